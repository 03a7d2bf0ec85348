// Node's http2 module: gRPC by hand against SLUICE_GRPC, REST against SLUICE_HTTP, many streams of one connection.
import assert from 'node:assert/strict';
import http2 from 'node:http2';
import {once} from 'node:events';
import {kTensors, run, test} from './cases.mjs';

const kService = '/inference.GRPCInferenceService/';
const kStreams = 64;
const {NGHTTP2_CANCEL} = http2.constants;

// A connection for the time of `body`.
async function connected(address, body) {
  const session = http2.connect(`http://${address}`);
  await once(session, 'connect');
  try {
    return await body(session);
  } finally {
    session.destroy();
  }
}
const onGrpc = (body) => () => connected(process.env.SLUICE_GRPC, body);
const onHttp = (body) => () => connected(process.env.SLUICE_HTTP, body);

// The whole answer of a stream: head, trailers (null: none), body.
async function answerOf(stream) {
  const answer = {head: null, trailers: null};
  stream.on('response', (head) => { answer.head = head; });
  stream.on('trailers', (trailers) => { answer.trailers = trailers; });
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return {...answer, body: Buffer.concat(chunks)};
}

function rest(session, method, path, body, headers = {}) {
  const stream = session.request({':method': method, ':path': path, ...headers}, {endStream: body === undefined});
  if (body !== undefined) stream.end(body);
  return answerOf(stream);
}

// The wire format by hand: a field of bytes, and the 5 bytes before a message.
function varint(n) {
  const bytes = [];
  for (; n > 127; n = Math.floor(n / 128)) bytes.push(n % 128 | 128);
  return Buffer.from([...bytes, n]);
}
function field(number, data) {
  const bytes = Buffer.from(data);
  return Buffer.concat([varint(number << 3 | 2), varint(bytes.length), bytes]);
}
function frame(message) {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

function inferMessage(name, {model = name, columns = 3, raw = kTensors[name].raw} = {}) {
  const shape = Buffer.concat([varint(1), varint(columns)]);
  const input = Buffer.concat([field(1, 'INPUT0'), field(2, kTensors[name].datatype), field(3, shape)]);
  return frame(Buffer.concat([field(1, model), field(5, input), field(7, raw)]));
}

function openCall(session, method, headers = {}) {
  return session.request({':method': 'POST', ':path': `${kService}${method}`, 'content-type': 'application/grpc',
                          te: 'trailers', ...headers});
}

function grpcCall(session, method, body, headers) {
  const stream = openCall(session, method, headers);
  stream.end(body);
  return answerOf(stream);
}

// The code is in the trailers, or in the head of an answer that is a head alone.
const codeOf = (answer) => (answer.trailers ?? answer.head)['grpc-status'];

function checkEcho(answer, raw) {
  assert.equal(answer.head[':status'], 200);
  assert.equal(answer.head['content-type'], 'application/grpc');
  assert.equal(answer.trailers['grpc-status'], '0');
  assert.equal(answer.body[0], 0);
  assert.equal(answer.body.readUInt32BE(1), answer.body.length - 5);
  assert.ok(answer.body.includes(field(6, raw)), 'raw_output_contents is not what was sent');
}

test('a gRPC call: head, message, trailers', onGrpc(async (session) => {
  const answer = await grpcCall(session, 'ServerLive', frame(Buffer.alloc(0)));
  assert.equal(answer.head[':status'], 200);
  assert.equal(answer.head['grpc-status'], undefined);
  assert.deepEqual(answer.body, frame(Buffer.from([8, 1])));
  assert.equal(answer.trailers['grpc-status'], '0');
}));

test('all datatypes', onGrpc(async (session) => {
  for (const [name, {raw}] of Object.entries(kTensors)) {
    checkEcho(await grpcCall(session, 'ModelInfer', inferMessage(name)), raw);
  }
}));

test('a message in many small frames', onGrpc(async (session) => {
  const stream = openCall(session, 'ModelInfer');
  const answered = answerOf(stream);
  for (const byte of inferMessage('fp32')) stream.write(Buffer.from([byte]));
  stream.end();
  checkEcho(await answered, kTensors.fp32.raw);
}));

test('4 MB through the flow-control windows', onGrpc(async (session) => {
  const raw = Buffer.alloc(4 << 20, 'window ');
  checkEcho(await grpcCall(session, 'ModelInfer', inferMessage('uint8', {columns: raw.length, raw})), raw);
}));

test(`${kStreams} gRPC streams at once`, onGrpc(async (session) => {
  const echo = async (_, i) => {
    const raw = Buffer.alloc(1000, i);
    checkEcho(await grpcCall(session, 'ModelInfer', inferMessage('uint8', {columns: raw.length, raw})), raw);
  };
  await Promise.all(Array.from({length: kStreams}, echo));
}));

test('errors are trailers with a message', onGrpc(async (session) => {
  const unknown = await grpcCall(session, 'ModelInfer', inferMessage('fp32', {model: 'nothing'}));
  assert.equal(unknown.head[':status'], 200);
  assert.equal(codeOf(unknown), '5');
  assert.match(decodeURIComponent((unknown.trailers ?? unknown.head)['grpc-message']), /nothing/);
  assert.equal(codeOf(await grpcCall(session, 'ModelInfer', inferMessage('fp32', {columns: 4}))), '3');
  assert.equal(codeOf(await grpcCall(session, 'NoSuchCall', frame(Buffer.alloc(0)))), '12');
  assert.equal(codeOf(await grpcCall(session, 'ModelInfer', frame(Buffer.from('not a message')))), '3');
}));

test('grpc-timeout bounds the wait behind another call', onGrpc(async (session) => {
  const slow = inferMessage('fp32', {model: 'slow'});
  const running = grpcCall(session, 'ModelInfer', slow);
  await new Promise((resolve) => session.ping(resolve));  // the server has it
  const late = await grpcCall(session, 'ModelInfer', slow, {'grpc-timeout': '50m'});
  assert.equal(codeOf(late), '4');
  checkEcho(await running, kTensors.fp32.raw);
  assert.equal(codeOf(await grpcCall(session, 'ModelInfer', slow, {'grpc-timeout': '1x'})), '3');
}));

test('a cancelled stream leaves the others', onGrpc(async (session) => {
  const slow = inferMessage('fp32', {model: 'slow'});
  const kept = grpcCall(session, 'ModelInfer', slow);
  const waiting = openCall(session, 'ModelInfer');
  waiting.end(slow);
  const halfSent = openCall(session, 'ModelInfer');
  halfSent.write(inferMessage('fp32').subarray(0, 20));
  await new Promise((resolve) => session.ping(resolve));  // the server has all three
  for (const stream of [waiting, halfSent]) {
    stream.close(NGHTTP2_CANCEL);
    await once(stream, 'close');
  }
  checkEcho(await kept, kTensors.fp32.raw);
  checkEcho(await grpcCall(session, 'ModelInfer', inferMessage('fp32')), kTensors.fp32.raw);
}));

test('health', onGrpc(async (session) => {
  const check = async (service) => {
    const stream = session.request({':method': 'POST', ':path': '/grpc.health.v1.Health/Check',
                                    'content-type': 'application/grpc', te: 'trailers'});
    stream.end(frame(service === '' ? Buffer.alloc(0) : field(1, service)));
    return answerOf(stream);
  };
  assert.deepEqual((await check('')).body, frame(Buffer.from([8, 1])));
  assert.equal(codeOf(await check('nothing')), '5');
}));

test('REST: health and metadata', onHttp(async (session) => {
  for (const path of ['/v2/health/live', '/v2/health/ready', '/v2/models/fp32/ready']) {
    assert.equal((await rest(session, 'GET', path)).head[':status'], 200, path);
  }
  assert.equal(JSON.parse((await rest(session, 'GET', '/v2')).body).name, 'sluice');
  const {inputs} = JSON.parse((await rest(session, 'GET', '/v2/models/bytes')).body);
  assert.deepEqual(inputs, [{name: 'INPUT0', datatype: 'BYTES', shape: [-1, -1]}]);
  const {model_stats: [stats]} = JSON.parse((await rest(session, 'GET', '/v2/models/bool/stats')).body);
  assert.equal(stats.name, 'bool');
}));

test(`REST: ${kStreams} streams at once`, onHttp(async (session) => {
  const echo = async (_, i) => {
    const input = {name: 'INPUT0', datatype: 'FP32', shape: [1, 2], data: [i, -i]};
    const answer = await rest(session, 'POST', '/v2/models/fp32/infer', JSON.stringify({inputs: [input]}));
    assert.deepEqual(JSON.parse(answer.body).outputs[0].data.map((x) => x + 0), [i, -i + 0]);
  };
  await Promise.all(Array.from({length: kStreams}, echo));
}));

test('REST: errors', onHttp(async (session) => {
  const missing = await rest(session, 'GET', '/v2/models/nothing');
  assert.equal(missing.head[':status'], 404);
  assert.match(JSON.parse(missing.body).error, /nothing/);
  const input = {name: 'INPUT0', datatype: 'FP32', shape: [1, 3], data: [1, 2]};
  const wrong = await rest(session, 'POST', '/v2/models/fp32/infer', JSON.stringify({inputs: [input]}));
  assert.equal(wrong.head[':status'], 400);
}));

test('REST: an early error is whole, and the stream ends without an error', onHttp(async (session) => {
  const early = [['content-encoding', 'gzip', 415], ['inference-header-content-length', '100000', 400]];
  for (const [name, value, status] of early) {
    const stream = session.request({':method': 'POST', ':path': '/v2/models/fp32/infer', 'content-length': '50', [name]: value},
                                   {endStream: false});
    const answer = await answerOf(stream);
    assert.equal(answer.head[':status'], status);
    assert.match(JSON.parse(answer.body).error, new RegExp(value));
    if (!stream.closed) await once(stream, 'close');
    assert.equal(stream.rstCode, http2.constants.NGHTTP2_NO_ERROR);
  }
  assert.equal((await rest(session, 'GET', '/v2/health/live')).head[':status'], 200);
}));

test('the connection ends well', onGrpc(async (session) => {
  checkEcho(await grpcCall(session, 'ModelInfer', inferMessage('fp32')), kTensors.fp32.raw);
  let goaway = 0;
  session.on('goaway', (code) => { goaway = code; });
  session.close();
  await once(session, 'close');
  assert.equal(goaway, 0);
}));

await run();
