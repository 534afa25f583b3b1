/**
 * The part of the wire that a host needs: parsing and printing of messages, and names. The types of all methods are in
 * `methods/`. Both mirror the crate `bridge-protocol` and PROTOCOL.md; all suites check the same messages of
 * `tests/wire`.
 */

import type { RegisterParams } from './methods/runtime';
import type { ChatResult as AnyChatResult } from './methods/vscode';

export type {
  ChatHistoryMessage,
  ChatHistoryResult,
  ExecuteCommandResult,
  MessageLevel,
  ShowMessageResult,
} from './methods/vscode';

/** The protocol version that `bridge/hello` negotiates. */
export const PROTOCOL_VERSION = 1;

/** Largest message text in bytes. The daemon closes a connection that sends more. */
export const MESSAGE_BYTES = 16 * 1024 * 1024;

/** The methods that this extension serves, by their canonical names. */
export const METHODS = [
  'vscode/chat',
  'vscode/showMessage',
  'vscode/executeCommand',
  'vscode/getChatHistory',
] as const;

export type Method = (typeof METHODS)[number];

/** Finds a method by its name or an alias: with or without `vscode/`, camelCase or snake_case. */
export function canonicalMethod(name: string): Method | undefined {
  const short = name.startsWith('vscode/') ? name.slice('vscode/'.length) : name;
  if (short.includes('/')) {
    return undefined;
  }
  const camel = short.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
  return METHODS.find((method) => method === `vscode/${camel}`);
}

/** Timeout in milliseconds of a request that names none. */
export function defaultTimeout(method: Method | undefined): number {
  return method === 'vscode/executeCommand' ? 10_000 : 30_000;
}

/** The answer of a window, which always names the conversation. */
export type ChatResult = AnyChatResult & { readonly conversationId: string };

/** The description of a window in `runtime/register` and `runtime/update`. */
export type Registration = Required<Omit<RegisterParams, 'runtimeId' | 'edge'>>;

/** An id as its sender wrote it. */
export type Id = number | string;

export interface ErrorObject {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

/** One message from the daemon. */
export type Message =
  | { readonly kind: 'request'; readonly id: Id; readonly method: string; readonly params: unknown }
  | { readonly kind: 'notification'; readonly method: string; readonly params: unknown }
  | { readonly kind: 'result'; readonly id: Id; readonly result: unknown }
  | { readonly kind: 'failure'; readonly id: Id | null; readonly error: ErrorObject }
  | { readonly kind: 'invalid'; readonly reason: string };

/** Parses one message. Never throws: text that is not a message is `invalid`. */
export function parse(text: string): Message {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return { kind: 'invalid', reason: `not JSON: ${(error as Error).message}` };
  }
  if (!isObject(value) || value['jsonrpc'] !== '2.0') {
    return { kind: 'invalid', reason: 'no JSON-RPC 2.0 object' };
  }
  const { id, method, params, result, error } = value;
  if (method !== undefined) {
    if (typeof method !== 'string') {
      return { kind: 'invalid', reason: 'the method is no string' };
    }
    if (id === undefined) {
      return { kind: 'notification', method, params };
    }
    return isId(id)
      ? { kind: 'request', id, method, params }
      : { kind: 'invalid', reason: 'the id is neither a number nor a string' };
  }
  if (isErrorObject(error) && result === undefined && (id === null || isId(id))) {
    return { kind: 'failure', id, error };
  }
  if (error === undefined && result !== undefined && isId(id)) {
    return { kind: 'result', id, result };
  }
  return { kind: 'invalid', reason: 'neither a request nor an answer' };
}

export function printRequest(id: Id, method: string, params?: unknown): string {
  return JSON.stringify({ jsonrpc: '2.0', id, method, params });
}

export function printNotification(method: string, params?: unknown): string {
  return JSON.stringify({ jsonrpc: '2.0', method, params });
}

export function printResult(id: Id, result: unknown): string {
  return JSON.stringify({ jsonrpc: '2.0', id, result: result ?? {} });
}

export function printFailure(id: Id, error: ErrorObject): string {
  return JSON.stringify({ jsonrpc: '2.0', id, error });
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isId(value: unknown): value is Id {
  return typeof value === 'number' || typeof value === 'string';
}

function isErrorObject(value: unknown): value is ErrorObject & Record<string, unknown> {
  return isObject(value) && typeof value['code'] === 'number' && typeof value['message'] === 'string';
}
