/**
 * Errors that a caller sees. The codes are those of PROTOCOL.md that a host sends or reads. One function turns any
 * thrown value into an error object.
 */

import type { ErrorObject } from './protocol';

/** The codes, by their names in `data.kind`. */
export const CODES = {
  MethodNotFound: -32601,
  InvalidParams: -32602,
  InternalError: -32603,
  OversizedResponse: -32008,
  CommandFailed: -32000,
  Timeout: -32052,
  NotAllowed: -32054,
  BlockedByUser: -32055,
  VersionMismatch: -32057,
  RequestCancelled: -32800,
} as const;

export type ErrorKind = keyof typeof CODES;

/** An error with a kind for programs and a sentence for people. */
export class BridgeError extends Error {
  override readonly name = 'BridgeError';

  constructor(
    readonly kind: ErrorKind,
    message: string,
    /** Further facts for programs, beside `kind` and `retryable`. */
    readonly facts: Readonly<Record<string, unknown>> = {},
  ) {
    super(message);
  }
}

/** The daemon's answer to one of our own requests was an error. */
export class AnsweredError extends Error {
  override readonly name = 'AnsweredError';

  constructor(readonly error: ErrorObject) {
    super(error.message);
  }
}

/** The error object for a thrown value. */
export function toErrorObject(thrown: unknown): ErrorObject {
  if (thrown instanceof BridgeError) {
    const data = { ...thrown.facts, kind: thrown.kind, retryable: false };
    return { code: CODES[thrown.kind], message: thrown.message, data };
  }
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return {
    code: CODES.InternalError,
    message: `The editor could not carry out the request: ${message}`,
    data: { kind: 'InternalError', retryable: false },
  };
}

export const cancelled = (): BridgeError => new BridgeError('RequestCancelled', 'The request was cancelled.');

export const unknownMethod = (name: string): BridgeError =>
  new BridgeError('MethodNotFound', `Unknown request type: ${name}`);
