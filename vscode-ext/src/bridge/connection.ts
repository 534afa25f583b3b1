/**
 * One connection to a daemon over one transport: our own requests that wait for answers, and the daemon's requests
 * that are being served.
 *
 * Every request from the daemon gets exactly one answer as long as the transport lives. A handler that throws fails
 * its own request and nothing else. Text that is not a message is logged and dropped. When the transport ends, the
 * signals of all handlers are aborted, and our own requests are rejected.
 */

import { AnsweredError, BridgeError, cancelled, toErrorObject } from './errors';
import {
  MESSAGE_BYTES,
  parse,
  printFailure,
  printNotification,
  printRequest,
  printResult,
  isObject,
  type Id,
  type Message,
} from './protocol';
import type { Transport, TransportEnd } from './transport';

/** What a handler gets beside the method and params of a request. */
export interface Call {
  /** Aborted when the caller cancelled, its deadline passed, or the connection ended. */
  readonly signal: AbortSignal;
  /** Sends a `$/progress` value to the caller. */
  readonly progress: (value: unknown) => void;
}

/** Serves one request. Its return value is the result; a thrown value becomes the error. */
export type Dispatch = (method: string, params: unknown, call: Call) => Promise<unknown>;

/** The log. Payloads are never logged: they are private to the user. */
export interface Log {
  debug(message: string): void;
  info(message: string): void;
  warn(message: string): void;
  error(message: string): void;
}

interface Awaited {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
}

export class Connection {
  /** Called once when the transport has ended. */
  onEnd: (end: TransportEnd) => void = () => undefined;

  private lastId = 0;
  private ended = false;
  private readonly awaited = new Map<Id, Awaited>();
  private readonly working = new Map<Id, AbortController>();

  constructor(
    private readonly transport: Transport,
    private readonly dispatch: Dispatch,
    private readonly log: Log,
  ) {
    transport.onMessage = (text) => {
      this.receive(parse(text));
    };
    transport.onEnd = (end) => {
      this.end(end);
    };
  }

  /**
   * Sends a request to the daemon. Rejects with an {@link AnsweredError}, after `timeout`, or when the connection
   * ends.
   */
  async request(method: string, params: unknown, timeout: number): Promise<unknown> {
    if (this.ended) {
      throw new Error(`the connection ended before ${method} was sent`);
    }
    const id = ++this.lastId;
    let timer: NodeJS.Timeout | undefined;
    try {
      return await new Promise<unknown>((resolve, reject) => {
        this.awaited.set(id, { resolve, reject });
        timer = setTimeout(() => {
          reject(new Error(`the bridge did not answer ${method} within ${timeout} ms`));
        }, timeout);
        this.transport.send(printRequest(id, method, params));
      });
    } finally {
      clearTimeout(timer);
      this.awaited.delete(id);
    }
  }

  close(): void {
    this.transport.close();
  }

  private receive(message: Message): void {
    switch (message.kind) {
      case 'request':
        void this.work(message.id, message.method, message.params);
        break;
      case 'notification':
        this.notice(message.method, message.params);
        break;
      case 'result':
        this.awaited.get(message.id)?.resolve(message.result);
        break;
      case 'failure':
        if (message.id !== null) {
          this.awaited.get(message.id)?.reject(new AnsweredError(message.error));
        } else {
          this.log.warn(`The bridge rejected a message of ours: ${message.error.message}`);
        }
        break;
      case 'invalid':
        this.log.warn(`The bridge sent something that is no message: ${message.reason}`);
        break;
    }
  }

  private notice(method: string, params: unknown): void {
    if (method !== '$/cancelRequest' || !isObject(params)) {
      this.log.debug(`Ignored notification ${method}`);
      return;
    }
    this.working.get(params['id'] as Id)?.abort(cancelled());
  }

  private async work(id: Id, method: string, params: unknown): Promise<void> {
    const begun = Date.now();
    const controller = new AbortController();
    this.working.set(id, controller);
    const call: Call = {
      signal: controller.signal,
      progress: (value) => {
        if (!controller.signal.aborted) {
          this.transport.send(printNotification('$/progress', { id, value }));
        }
      },
    };
    let answer: string;
    let outcome = 'answered';
    try {
      const result = await this.dispatch(method, params, call);
      controller.signal.throwIfAborted();
      answer = bounded(id, printResult(id, result));
    } catch (thrown) {
      // After an abort, the reason of the abort counts, not the error that the handler made of it.
      const error = toErrorObject(controller.signal.aborted ? controller.signal.reason : thrown);
      answer = printFailure(id, error);
      outcome = `failed with ${error.code}`;
    }
    this.working.delete(id);
    this.log.debug(`${method} (${id}) ${outcome} after ${Date.now() - begun} ms`);
    if (!this.ended) {
      this.transport.send(answer);
    }
  }

  private end(end: TransportEnd): void {
    this.ended = true;
    for (const { reject } of this.awaited.values()) {
      reject(new Error(`the connection ended with code ${end.code}`));
    }
    for (const controller of this.working.values()) {
      controller.abort(cancelled());
    }
    this.onEnd(end);
  }
}

/** Replaces an answer that is too big by an error: the daemon would close the connection. */
function bounded(id: Id, answer: string): string {
  if (answer.length <= MESSAGE_BYTES / 3 || Buffer.byteLength(answer) <= MESSAGE_BYTES) {
    return answer;
  }
  const limit = MESSAGE_BYTES / 1024 / 1024;
  const error = new BridgeError('OversizedResponse', `The answer is larger than ${limit} MiB: ask for less.`);
  return printFailure(id, toErrorObject(error));
}
