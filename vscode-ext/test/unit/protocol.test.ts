import assert from 'node:assert/strict';
import { test } from 'node:test';

import { CODES } from '../../src/bridge/errors';
import { canonicalMethod, METHODS, parse, printResult } from '../../src/bridge/protocol';

test('messages are told apart by their members', () => {
  const kinds: [string, string][] = [
    ['{"jsonrpc":"2.0","id":1,"method":"a"}', 'request'],
    ['{"jsonrpc":"2.0","id":"x","method":"a","params":[1]}', 'request'],
    ['{"jsonrpc":"2.0","method":"a"}', 'notification'],
    ['{"jsonrpc":"2.0","id":1,"result":null}', 'result'],
    ['{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"m"}}', 'failure'],
    ['{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"m"}}', 'failure'],
    ['{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":-1,"message":"m"}}', 'invalid'],
    ['{"jsonrpc":"2.0","id":1,"error":{"code":"x"}}', 'invalid'],
    ['{"jsonrpc":"2.0","id":null,"method":"a"}', 'invalid'],
    ['{"jsonrpc":"2.0","id":1,"method":2}', 'invalid'],
    ['{"id":1,"type":"vscode/chat"}', 'invalid'],
    ['nonsense', 'invalid'],
  ];
  for (const [text, kind] of kinds) {
    assert.equal(parse(text).kind, kind, text);
  }
});

test('aliases lead to the canonical method', () => {
  for (const method of METHODS) {
    assert.equal(canonicalMethod(method), method);
    assert.equal(canonicalMethod(method.slice('vscode/'.length)), method);
  }
  assert.equal(canonicalMethod('show_message'), 'vscode/showMessage');
  assert.equal(canonicalMethod('vscode/get_chat_history'), 'vscode/getChatHistory');
  for (const name of ['', 'vscode/', 'Chat', 'vscode/vscode/chat', 'bridge/chat', 'toString']) {
    assert.equal(canonicalMethod(name), undefined, name);
  }
});

test('a result is always there', () => {
  assert.equal(printResult(1, undefined), '{"jsonrpc":"2.0","id":1,"result":{}}');
  assert.equal(printResult('a', { x: null }), '{"jsonrpc":"2.0","id":"a","result":{"x":null}}');
});

test('codes are distinct', () => {
  assert.equal(new Set(Object.values(CODES)).size, Object.keys(CODES).length);
});
