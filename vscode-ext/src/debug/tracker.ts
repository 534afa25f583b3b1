/**
 * The debug path: the debug adapter of a net sends requests as `customRequest` events, and gets the answers as
 * `customRequestResponse` requests. No daemon is involved, so the deadlines are kept here.
 */

import * as vscode from 'vscode';

import { BridgeError, cancelled } from '../bridge/errors';
import { canonicalMethod, defaultTimeout, isObject } from '../bridge/protocol';
import type { Window } from '../ctx';
import { handle } from '../handlers';

/** The body of the adapter's event. */
interface CustomRequest {
  readonly requestId: number | string;
  readonly type: string;
  readonly params: unknown;
}

export class BridgeTracker implements vscode.DebugAdapterTracker {
  private readonly grants = new Set<string>();
  private readonly stopped = new AbortController();

  constructor(
    private readonly window: Window,
    private readonly session: vscode.DebugSession,
  ) {}

  onDidSendMessage(message: unknown): void {
    const request = customRequest(message);
    if (request) {
      void this.answer(request);
    }
  }

  onWillStopSession(): void {
    this.stopped.abort(cancelled());
  }

  onExit(): void {
    this.stopped.abort(cancelled());
  }

  private async answer({ requestId, type, params }: CustomRequest): Promise<void> {
    const { log, history } = this.window;
    const signal = AbortSignal.any([this.stopped.signal, deadline(type, params)]);
    const ctx = {
      log,
      history,
      source: this.session.name,
      grants: this.grants,
      signal,
      progress: () => undefined,
    };
    let answer: object;
    try {
      const result = await handle(ctx, type, params);
      signal.throwIfAborted();
      answer = { requestId, success: true, result };
    } catch (error) {
      const thrown: unknown = signal.aborted ? signal.reason : error;
      answer = {
        requestId,
        success: false,
        error: thrown instanceof Error ? thrown.message : String(thrown),
      };
    }
    if (!this.stopped.signal.aborted) {
      await this.session.customRequest('customRequestResponse', answer).then(undefined, (error: unknown) => {
        log.warn(`The debug adapter did not take an answer: ${String(error)}`);
      });
    }
  }
}

function customRequest(message: unknown): CustomRequest | undefined {
  if (!isObject(message) || message['type'] !== 'event' || message['event'] !== 'customRequest') {
    return undefined;
  }
  const body = message['body'];
  if (!isObject(body) || typeof body['type'] !== 'string') {
    return undefined;
  }
  return { requestId: body['requestId'] as number | string, type: body['type'], params: body['params'] };
}

/** Aborts after the timeout of the request, or after the default of its method. */
function deadline(type: string, params: unknown): AbortSignal {
  const method = canonicalMethod(type);
  const named = isObject(params) ? Number(params['timeout'] ?? 0) : 0;
  const ms = named > 0 ? named : defaultTimeout(method);
  const controller = new AbortController();
  const what = method === 'vscode/executeCommand' ? 'Command' : 'Request';
  const timer = setTimeout(() => {
    controller.abort(new BridgeError('Timeout', `${what} timeout after ${ms} ms`));
  }, ms);
  timer.unref();
  return controller.signal;
}
