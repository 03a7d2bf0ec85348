// The cases of a client in Node: `test` adds one, `run` runs them in turn, prints a line each and the counts last.
const kCaseWithinMs = 20_000;
const cases = [];

export function test(name, body) {
  cases.push([name, body]);
}

function withinBound(promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not within ${kCaseWithinMs} ms`)), kCaseWithinMs);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

export async function run() {
  let passed = 0;
  for (const [name, body] of cases) {
    try {
      await withinBound(body());
      console.log(`ok ${name}`);
      ++passed;
    } catch (error) {
      console.log(`FAILED ${name}: ${error.stack ?? error}`);
    }
  }
  const failed = cases.length - passed;
  console.log(`${passed} passed, ${failed} failed`);
  process.exitCode = failed === 0 ? 0 : 1;
}

// name -> datatype, the values in JSON, their field of InferTensorContents, and the bytes in a raw tensor.
export const kTensors = {
  fp32: {datatype: 'FP32', values: [1, 2.5, -3], field: 'fp32_contents', raw: Buffer.from(new Float32Array([1, 2.5, -3]).buffer)},
  int64: {
    datatype: 'INT64', values: ['1', '-2', '9007199254740993'], field: 'int64_contents',
    raw: Buffer.from(new BigInt64Array([1n, -2n, 9007199254740993n]).buffer),
  },
  bytes: {
    datatype: 'BYTES', values: ['one', '', 'drei \u{1f980}'].map((text) => Buffer.from(text)), field: 'bytes_contents',
    raw: Buffer.from('\x03\0\0\0one\0\0\0\0\x09\0\0\0drei \xf0\x9f\xa6\x80', 'latin1'),
  },
  bool: {datatype: 'BOOL', values: [true, false, true], field: 'bool_contents', raw: Buffer.from([1, 0, 1])},
  uint8: {datatype: 'UINT8', values: [0, 7, 255], field: 'uint_contents', raw: Buffer.from([0, 7, 255])},
};
