// gRPC of Node (@grpc/grpc-js, @grpc/proto-loader) against SLUICE_GRPC.
import assert from 'node:assert/strict';
import {fileURLToPath} from 'node:url';
import grpc from '@grpc/grpc-js';
import loader from '@grpc/proto-loader';
import {kTensors, run, test} from './cases.mjs';

const {status} = grpc;
const kAnswerWithinMs = 10_000;
const kProtos = fileURLToPath(new URL('../../proto', import.meta.url));
const definition = loader.loadSync(['inference.proto', 'health.proto'],
                                   {includeDirs: [kProtos], keepCase: true, longs: String, defaults: true});
const protocol = grpc.loadPackageDefinition(definition);
const credentials = grpc.credentials.createInsecure();
const server = new protocol.inference.GRPCInferenceService(process.env.SLUICE_GRPC, credentials);
const health = new protocol.grpc.health.v1.Health(process.env.SLUICE_GRPC, credentials);

// `started` gets the call itself, to cancel it.
function call(client, method, request, {deadlineMs = kAnswerWithinMs, started} = {}) {
  return new Promise((resolve, reject) => {
    const running = client[method](request, {deadline: Date.now() + deadlineMs},
                                   (error, answer) => error ? reject(error) : resolve(answer));
    started?.(running);
  });
}

async function refused(promise, code, ...words) {
  const error = await promise.then(() => assert.fail('expected an error, got an answer'), (e) => e);
  assert.equal(error.code, code, `${error.code}: ${error.details}`);
  for (const word of words) assert.ok(error.details.includes(word), `'${word}' is not in '${error.details}'`);
}

function inferRequest(name, {shape = [1, 3], contents, raw, model = name} = {}) {
  const input = {name: 'INPUT0', datatype: kTensors[name].datatype, shape, contents};
  return {model_name: model, id: 'n-1', inputs: [input], raw_input_contents: raw ? [raw] : []};
}

function checkAnswer(answer, name) {
  const {datatype, raw} = kTensors[name];
  assert.equal(answer.model_name, name);
  assert.equal(answer.model_version, '1');
  assert.equal(answer.id, 'n-1');
  assert.equal(answer.outputs.length, 1);
  const [output] = answer.outputs;
  assert.deepEqual([output.name, output.datatype, output.shape], ['OUTPUT0', datatype, ['1', '3']]);
  assert.deepEqual(answer.raw_output_contents, [raw]);
}

test('server live, ready, metadata', async () => {
  assert.equal((await call(server, 'ServerLive', {})).live, true);
  assert.equal((await call(server, 'ServerReady', {})).ready, true);
  const metadata = await call(server, 'ServerMetadata', {});
  assert.equal(metadata.name, 'sluice');
  assert.match(metadata.version, /^\d+\.\d+\.\d+/);
});

test('model ready and metadata', async () => {
  for (const [name, {datatype}] of Object.entries(kTensors)) {
    assert.equal((await call(server, 'ModelReady', {name})).ready, true);
    const metadata = await call(server, 'ModelMetadata', {name, version: '1'});
    assert.deepEqual([metadata.name, metadata.versions], [name, ['1']]);
    assert.deepEqual(metadata.inputs, [{name: 'INPUT0', datatype, shape: ['-1', '-1']}]);
    assert.deepEqual(metadata.outputs, [{name: 'OUTPUT0', datatype, shape: ['-1', '-1']}]);
  }
});

for (const [name, {field, values, raw}] of Object.entries(kTensors)) {
  test(`infer ${name}, typed contents`, async () => {
    checkAnswer(await call(server, 'ModelInfer', inferRequest(name, {contents: {[field]: values}})), name);
  });
  test(`infer ${name}, raw contents`, async () => {
    checkAnswer(await call(server, 'ModelInfer', inferRequest(name, {raw})), name);
  });
}

test('1 MB there and back', async () => {
  const raw = Buffer.alloc(1 << 20, 'sluice ');
  const answer = await call(server, 'ModelInfer', inferRequest('uint8', {shape: [1, raw.length], raw}));
  assert.ok(answer.raw_output_contents[0].equals(raw));
});

test('64 calls at once on one connection', async () => {
  const calls = Array.from({length: 64}, async (_, i) => {
    const raw = Buffer.from([i]);
    const answer = await call(server, 'ModelInfer', inferRequest('uint8', {shape: [1, 1], raw}));
    assert.deepEqual(answer.raw_output_contents, [raw]);
  });
  await Promise.all(calls);
});

test('statistics count', async () => {
  const count = async () => {
    const {model_stats: [stats]} = await call(server, 'ModelStatistics', {name: 'fp32', version: '1'});
    assert.equal(stats.name, 'fp32');
    return [Number(stats.inference_count), Number(stats.inference_stats.success.count)];
  };
  const before = await count();
  await call(server, 'ModelInfer', inferRequest('fp32', {shape: [2, 3], raw: Buffer.alloc(24)}));
  assert.deepEqual(await count(), [before[0] + 2, before[1] + 1]);
});

test('unknown models and calls', async () => {
  for (const method of ['ModelReady', 'ModelMetadata', 'ModelStatistics']) {
    await refused(call(server, method, {name: 'nothing'}), status.NOT_FOUND, 'nothing');
  }
  const request = inferRequest('fp32', {model: 'nothing', raw: kTensors.fp32.raw});
  await refused(call(server, 'ModelInfer', request), status.NOT_FOUND, 'nothing');
  await refused(call(server, 'ModelInfer', {...request, model_name: 'fp32', model_version: '7'}), status.NOT_FOUND, '7');
});

test('wrong shapes and datatypes', async () => {
  const {raw} = kTensors.fp32;
  await refused(call(server, 'ModelInfer', inferRequest('fp32', {shape: [1, 4], raw})), status.INVALID_ARGUMENT, 'INPUT0');
  await refused(call(server, 'ModelInfer', inferRequest('fp32', {shape: [3], raw})), status.INVALID_ARGUMENT, 'INPUT0');
  await refused(call(server, 'ModelInfer', inferRequest('uint8', {model: 'fp32', raw: kTensors.uint8.raw})),
                status.INVALID_ARGUMENT, 'FP32', 'UINT8');
  const both = inferRequest('fp32', {contents: {fp32_contents: [1, 2, 3]}, raw});
  await refused(call(server, 'ModelInfer', both), status.INVALID_ARGUMENT);
});

test('a deadline', async () => {
  const slow = inferRequest('fp32', {model: 'slow', raw: kTensors.fp32.raw});
  await refused(call(server, 'ModelInfer', slow, {deadlineMs: 50}), status.DEADLINE_EXCEEDED);
  assert.deepEqual((await call(server, 'ModelInfer', slow)).raw_output_contents, [kTensors.fp32.raw]);
});

test('a cancelled call leaves the others', async () => {
  const slow = inferRequest('fp32', {model: 'slow', raw: kTensors.fp32.raw});
  const kept = call(server, 'ModelInfer', slow);
  const dropped = call(server, 'ModelInfer', slow, {started: (running) => setImmediate(() => running.cancel())});
  await refused(dropped, status.CANCELLED);
  assert.deepEqual((await kept).raw_output_contents, [kTensors.fp32.raw]);
});

test('health', async () => {
  assert.equal((await call(health, 'Check', {service: ''})).status, 1);
  assert.equal((await call(health, 'Check', {service: 'inference.GRPCInferenceService'})).status, 1);
  await refused(call(health, 'Check', {service: 'nothing'}), status.NOT_FOUND, 'nothing');
});

await run();
server.close();
health.close();
