import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import { test } from 'node:test';

import { Connection, type Call, type Dispatch } from '../../src/bridge/connection';
import { BridgeError } from '../../src/bridge/errors';
import { MESSAGE_BYTES } from '../../src/bridge/protocol';
import { memoryLog, MemoryTransport } from './memoryTransport';

function connect(dispatch: Dispatch = () => Promise.resolve({})) {
  const transport = new MemoryTransport();
  const log = memoryLog();
  return { transport, log, connection: new Connection(transport, dispatch, log) };
}

test('a request is carried out and answered under its id', async () => {
  const { transport } = connect((method, params) => Promise.resolve({ method, params }));
  transport.receive({ id: 7, method: 'vscode/chat', params: { message: 'hi' } });
  transport.receive({ id: '7', method: 'vscode/showMessage' });
  assert.deepEqual((await transport.answerTo(7)).result, {
    method: 'vscode/chat',
    params: { message: 'hi' },
  });
  assert.deepEqual((await transport.answerTo('7')).result, { method: 'vscode/showMessage' });
});

test('a handler that returns nothing still gives an object', async () => {
  const { transport } = connect(() => Promise.resolve(undefined));
  transport.receive({ id: 1, method: 'x' });
  assert.deepEqual((await transport.answerTo(1)).result, {});
});

test('a handler that fails fails its own request only', async () => {
  const { transport } = connect((method) =>
    method === 'bad' ? Promise.reject(new TypeError('oops')) : Promise.resolve({ fine: true }),
  );
  transport.receive({ id: 1, method: 'bad' });
  transport.receive({ id: 2, method: 'good' });
  const { error } = await transport.answerTo(1);
  assert.equal(error?.code, -32603);
  assert.match(error.message, /oops/);
  assert.deepEqual((await transport.answerTo(2)).result, { fine: true });
});

test('an error keeps its kind, code and facts', async () => {
  const { transport } = connect(() =>
    Promise.reject(new BridgeError('BlockedByUser', 'no', { reason: 'denied' })),
  );
  transport.receive({ id: 1, method: 'x' });
  assert.deepEqual((await transport.answerTo(1)).error, {
    code: -32055,
    message: 'no',
    data: { kind: 'BlockedByUser', retryable: false, reason: 'denied' },
  });
});

test('progress names the request and stops after a cancel', async () => {
  let call: Call | undefined;
  const { transport } = connect((_method, _params, given) => {
    call = given;
    return new Promise((_, reject) => {
      given.signal.addEventListener('abort', () => {
        reject(new Error('whatever a handler makes of it'));
      });
    });
  });
  transport.receive({ id: 3, method: 'vscode/chat' });
  call?.progress({ text: 'a' });
  transport.receive({ method: '$/cancelRequest', params: { id: 3 } });
  call?.progress({ text: 'b' });
  assert.equal((await transport.answerTo(3)).error?.code, -32800);
  const progress = transport.sent.filter(({ method }) => method === '$/progress').map(({ params }) => params);
  assert.deepEqual(progress, [{ id: 3, value: { text: 'a' } }]);
});

test('a result that comes after the cancel is none', async () => {
  let finish: (result: object) => void = () => undefined;
  const { transport } = connect(() => new Promise((resolve) => (finish = resolve)));
  transport.receive({ id: 4, method: 'vscode/chat' });
  transport.receive({ method: '$/cancelRequest', params: { id: 4 } });
  finish({ response: 'half an ans' });
  assert.equal((await transport.answerTo(4)).error?.code, -32800);
});

test('a cancel for a request that is not under way is ignored', async () => {
  const { transport } = connect();
  transport.receive({ method: '$/cancelRequest', params: { id: 99 } });
  transport.receive({ method: '$/cancelRequest' });
  transport.receive({ id: 1, method: 'x' });
  assert.deepEqual((await transport.answerTo(1)).result, {});
});

test('text that is no message is logged and does no harm', async () => {
  const { transport, log } = connect();
  for (const text of ['', '{', '[]', '3', '{"jsonrpc":"2.0"}', '{"jsonrpc":"2.0","id":{},"method":"x"}']) {
    transport.onMessage(text);
  }
  assert.equal(log.lines.length, 6);
  transport.receive({ id: 1, method: 'x' });
  assert.deepEqual((await transport.answerTo(1)).result, {});
});

test('an answer that is too big becomes an error', async () => {
  const { transport } = connect(() => Promise.resolve({ result: 'ü'.repeat(MESSAGE_BYTES / 2) }));
  transport.receive({ id: 1, method: 'x' });
  assert.equal((await transport.answerTo(1)).error?.code, -32008);
});

test('our own requests get their answers, errors and limits', async () => {
  const { transport, connection } = connect();
  const good = connection.request('bridge/ping', {}, 5_000);
  await transport.answer('bridge/ping', { result: { fine: true } });
  assert.deepEqual(await good, { fine: true });

  const bad = connection.request('runtime/get', {}, 5_000);
  await Promise.all([
    assert.rejects(bad, { name: 'AnsweredError', message: 'no such runtime' }),
    transport.answer('runtime/get', { error: { code: -32602, message: 'no such runtime' } }),
  ]);
  await assert.rejects(
    connection.request('bridge/silent', {}, 1),
    /did not answer bridge\/silent within 1 ms/,
  );
});

test('the end of the transport ends everything that was under way', async () => {
  let signal: AbortSignal | undefined;
  const { transport, connection } = connect((_method, _params, call) => {
    signal = call.signal;
    return Promise.resolve({ late: true });
  });
  const ends: number[] = [];
  connection.onEnd = ({ code }) => ends.push(code);
  const pending = connection.request('bridge/ping', {}, 5_000);
  transport.receive({ id: 1, method: 'x' });
  transport.end(1006);
  await assert.rejects(pending, /ended with code 1006/);
  await assert.rejects(connection.request('bridge/ping', {}, 5_000), /ended before/);
  await turn();
  assert.equal(signal?.aborted, true);
  assert.deepEqual(ends, [1006]);
  assert.deepEqual(
    transport.sent.filter(({ id }) => id === 1).map(({ method }) => method),
    ['bridge/ping'],
  );
});

test('payloads do not reach the log', async () => {
  const { transport, log } = connect(() => Promise.resolve({ response: 'SECRET-ANSWER' }));
  transport.receive({ id: 1, method: 'vscode/chat', params: { message: 'SECRET-QUESTION' } });
  await transport.answerTo(1);
  assert.ok(log.lines.length > 0);
  assert.doesNotMatch(log.lines.join('\n'), /SECRET/);
});
