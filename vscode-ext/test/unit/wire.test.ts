/** The golden messages that the Rust, Python and TypeScript suites all read. */

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { BridgeError, CODES, toErrorObject, type ErrorKind } from '../../src/bridge/errors';
import { canonicalMethod, parse, printFailure, printResult } from '../../src/bridge/protocol';
import {
  readChatHistoryParams,
  readChatParams,
  readExecuteCommandParams,
  readShowMessageParams,
} from '../../src/handlers/params';

const folder = path.resolve(__dirname, '../../../tests/wire');

function golden<T>(name: string): T[] {
  return JSON.parse(readFileSync(path.join(folder, name), 'utf8')) as T[];
}

test('every file is read here', () => {
  const names = readdirSync(folder).filter((name) => name.endsWith('.json'));
  assert.deepEqual(names.sort(), ['answers.json', 'errors.json', 'methods.json', 'requests.json']);
});

test('requests mean what they should', () => {
  interface Case {
    readonly name: string;
    readonly text: string;
    readonly dialect: 'jsonRpc' | 'bridge';
    readonly id: string;
    readonly method: string;
    readonly params: unknown;
  }
  for (const { name, text, dialect, id, method, params } of golden<Case>('requests.json')) {
    const message = parse(text);
    if (dialect === 'bridge') {
      assert.equal(message.kind, 'invalid', `${name}: the daemon translates this dialect for hosts`);
      continue;
    }
    assert.ok(message.kind === 'request', name);
    assert.equal(message.id, JSON.parse(id), name);
    assert.equal(canonicalMethod(message.method) ?? message.method, method, name);
    assert.deepEqual(message.params ?? null, params, name);
  }
});

test('answers mean what they should', () => {
  interface Case {
    readonly name: string;
    readonly text: string;
    readonly id: number | null;
    readonly result?: unknown;
    readonly error?: { readonly code: number };
    readonly progress?: unknown;
  }
  for (const { name, text, id, result, error, progress } of golden<Case>('answers.json')) {
    const message = parse(text);
    if (progress !== undefined) {
      assert.deepEqual(
        message,
        { kind: 'notification', method: '$/progress', params: { id, value: progress } },
        name,
      );
    } else if (error) {
      assert.ok(message.kind === 'failure' && message.id === id && message.error.code === error.code, name);
      assert.ok(message.id === null || printFailure(message.id, message.error) === text, name);
    } else {
      assert.deepEqual(message, { kind: 'result', id, result }, name);
      assert.equal(printResult(id ?? 0, result), text, name);
    }
  }
});

test('errors of ours are those of the table', () => {
  const table = golden<{ code: number; kind: string; retryable: boolean }>('errors.json');
  for (const kind of Object.keys(CODES) as ErrorKind[]) {
    const { code, data } = toErrorObject(new BridgeError(kind, 'x'));
    // The one error that belongs to the editor and not to the bridge.
    const known =
      kind === 'CommandFailed'
        ? { code: -32000, kind, retryable: false }
        : table.find((row) => row.code === code);
    assert.deepEqual({ code, ...(data as object) }, known, kind);
  }
});

test('parameters and results of each method fit', () => {
  const readers: Readonly<Record<string, (params: unknown) => object>> = {
    'vscode/chat': readChatParams,
    'vscode/showMessage': readShowMessageParams,
    'vscode/executeCommand': readExecuteCommandParams,
    'vscode/getChatHistory': readChatHistoryParams,
  };
  const cases = golden<{ method: string; params: Record<string, unknown>; result: unknown }>('methods.json');
  for (const { method, params } of cases.filter((row) => row.method in readers)) {
    const read = readers[method]?.(params) as Record<string, unknown>;
    for (const [name, value] of Object.entries(params).filter(([key]) => key !== 'timeout')) {
      assert.deepEqual(read[name], value, `${method} ${name}`);
    }
  }
  assert.deepEqual(
    Object.keys(readers).filter((method) => !cases.some((row) => row.method === method)),
    [],
    'every method has an example',
  );
});
