#!/usr/bin/env node
// One inference with Node alone: sends numbers to the sample repository's `echo` model and prints the answer.
const url = process.argv[2] ?? 'http://127.0.0.1:8000';
const numbers = [1, 2.5, -3];
const response = await fetch(`${url}/v2/models/echo/infer`, {
  method: 'POST',
  body: JSON.stringify({inputs: [{name: 'INPUT0', datatype: 'FP32', shape: [1, numbers.length], data: numbers}]}),
});
const answer = await response.json();
if (!response.ok) throw new Error(`${response.status}: ${answer.error}`);
console.log(answer.outputs[0].name, answer.outputs[0].data);
