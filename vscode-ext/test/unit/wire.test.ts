/** The golden messages that the Rust, Python and TypeScript suites all read. */

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { BridgeError, CODES, toErrorObject, type ErrorKind } from '../../src/bridge/errors';
import type { Methods, Notifications } from '../../src/bridge/methods/index';
import {
  canonicalMethod,
  METHODS,
  parse,
  printFailure,
  printResult,
  type Method,
} from '../../src/bridge/protocol';
import {
  readChatHistoryParams,
  readChatParams,
  readExecuteCommandParams,
  readShowMessageParams,
} from '../../src/handlers/params';
import { METHOD_CHECKS, NOTIFICATION_CHECKS } from './methodChecks';

const folder = path.resolve(__dirname, '../../../tests/wire');

function golden<T>(name: string): T[] {
  return JSON.parse(readFileSync(path.join(folder, name), 'utf8')) as T[];
}

test('every file is read here', () => {
  const names = readdirSync(folder).filter((name) => name.endsWith('.json'));
  assert.deepEqual(names.sort(), [
    'answers.json',
    'errors.json',
    'methods.json',
    'notifications.json',
    'requests.json',
  ]);
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
    assert.deepEqual(
      { code, ...(data as object) },
      table.find((row) => row.code === code),
      kind,
    );
  }
});

interface MethodCase {
  readonly method: string;
  readonly params: Record<string, unknown>;
  readonly result: unknown;
  readonly progress?: readonly unknown[];
}

function isMethod(name: string): name is keyof Methods {
  return name in METHOD_CHECKS;
}

test('every method has types and an example', () => {
  const cases = golden<MethodCase>('methods.json');
  const sorted = (names: readonly string[]): readonly string[] => [...new Set(names)].sort();
  assert.deepEqual(sorted(cases.map(({ method }) => method)), sorted(Object.keys(METHOD_CHECKS)));
  assert.deepEqual(
    sorted(cases.filter(({ progress }) => progress).map(({ method }) => method)),
    sorted(
      Object.entries(METHOD_CHECKS).flatMap(([method, checks]) => ('progress' in checks ? [method] : [])),
    ),
  );
});

test('parameters, results and progress of every method fit their types', () => {
  for (const { method, params, result, progress = [] } of golden<MethodCase>('methods.json')) {
    assert.ok(isMethod(method), method);
    const checks = METHOD_CHECKS[method];
    assert.equal(checks.params(params, `${method} params`), '');
    assert.equal(checks.result(result, `${method} result`), '');
    for (const value of progress) {
      assert.equal(checks.progress?.(value, `${method} progress`), '');
    }
  }
});

test('parameters of every notification fit their types', () => {
  const cases = golden<{ method: keyof Notifications; params: unknown }>('notifications.json');
  assert.deepEqual(new Set(cases.map(({ method }) => method)), new Set(Object.keys(NOTIFICATION_CHECKS)));
  for (const { method, params } of cases) {
    assert.equal(NOTIFICATION_CHECKS[method](params, method), '');
  }
});

test('what does not fit is found', () => {
  const problems: [keyof Methods, unknown, RegExp][] = [
    ['shell/keys', {}, /params\.keys is missing/],
    ['shell/keys', { keys: [], key: 1 }, /unknown members: key/],
    ['shell/keys', { keys: [1] }, /params\.keys\[0\] is no string/],
    ['shell/keys', { keys: 'C-c' }, /is no array/],
    ['shell/signal', { signal: 'NONE' }, /is none of INT/],
    ['shell/resize', { columns: true, rows: 1 }, /is no number/],
    ['shell/create', { environment: { A: 1 } }, /params\.environment\.A is no string/],
    ['bridge/createToken', { role: 'guest', rights: [] }, /is none of client .*or/],
    ['bridge/ping', [], /is no object/],
  ];
  for (const [method, params, problem] of problems) {
    assert.match(METHOD_CHECKS[method].params(params, 'params'), problem, method);
  }
});

test('parameters of the methods that a window serves are read', () => {
  const readers: Readonly<Record<Method, (params: unknown) => object>> = {
    'vscode/chat': readChatParams,
    'vscode/showMessage': readShowMessageParams,
    'vscode/executeCommand': readExecuteCommandParams,
    'vscode/getChatHistory': readChatHistoryParams,
  };
  for (const { method, params } of golden<MethodCase>('methods.json')) {
    const served = METHODS.find((name) => name === method);
    if (served === undefined) {
      continue;
    }
    const read = readers[served](params) as Record<string, unknown>;
    for (const [name, value] of Object.entries(params).filter(([key]) => key !== 'timeout')) {
      assert.deepEqual(read[name], value, `${method} ${name}`);
    }
  }
});
