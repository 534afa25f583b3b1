/**
 * Makes a window a host of one run: connects, registers, serves, and reconnects with the same runtime id when the
 * connection is lost. It ends when the daemon ends, when another window registers the same id, when the daemon
 * refuses the connection, or with `detach`.
 */

import { setTimeout as sleep } from 'node:timers/promises';

import { backoff } from './backoff';
import { Connection, type Dispatch, type Log } from './connection';
import { AnsweredError, CODES } from './errors';
import { PROTOCOL_VERSION, type Registration } from './protocol';
import { CLOSE, RefusedError, type Transport, type TransportEnd } from './transport';
import type { Endpoint } from './webSocketTransport';

export type LinkEnd =
  /** The daemon closed the connection because its run is over. */
  | { readonly kind: 'daemonEnded' }
  /** The daemon has gone without a close frame. */
  | { readonly kind: 'daemonGone' }
  /** Another window has registered this runtime id. */
  | { readonly kind: 'replaced' }
  /** The daemon refused the connection, and would refuse it again. */
  | { readonly kind: 'refused'; readonly message: string }
  /** `detach` was called. */
  | { readonly kind: 'detached' };

export type LinkState =
  | { readonly kind: 'connecting' }
  | { readonly kind: 'attached' }
  | { readonly kind: 'ended'; readonly end: LinkEnd };

export interface LinkOptions {
  readonly runtimeId: string;
  /** Describes the window as it is now. */
  readonly registration: () => Registration;
  /** Looks up the daemon before each attempt. Returns `undefined` if it is not running. */
  readonly locate: () => Endpoint | undefined;
  readonly connect: (endpoint: Endpoint) => Promise<Transport>;
  readonly dispatch: Dispatch;
  readonly log: Log;
  readonly onState: (state: LinkState) => void;
}

/** Timeout of the daemon's own methods. It answers them at once, so this only guards against one that hangs. */
const ANSWER_MS = 10_000;

export class HostLink {
  private current: LinkState = { kind: 'connecting' };
  private connection: Connection | undefined;
  private readonly leaving = new AbortController();
  private readonly finished: Promise<void>;

  constructor(private readonly options: LinkOptions) {
    this.finished = this.live();
  }

  get state(): LinkState {
    return this.current;
  }

  /** Sends changes, such as the focus, to the daemon. After a lost connection, the next registration sends them. */
  async update(changed: Partial<Registration>): Promise<void> {
    if (this.current.kind === 'attached') {
      await this.connection?.request('runtime/update', changed, ANSWER_MS).catch((error: unknown) => {
        this.options.log.debug(`runtime/update failed: ${String(error)}`);
      });
    }
  }

  /** Closes the connection and does not reconnect. */
  async detach(): Promise<void> {
    this.leaving.abort();
    this.connection?.close();
    await this.finished;
  }

  private async live(): Promise<void> {
    // Let the constructor return first, so that the link is assigned when `onState` is called.
    await Promise.resolve();
    this.enter({ kind: 'ended', end: await this.serveUntilTheEnd() });
  }

  private async serveUntilTheEnd(): Promise<LinkEnd> {
    for (let attempt = 0; !this.isLeaving(); attempt++) {
      const endpoint = this.options.locate();
      if (!endpoint) {
        return { kind: 'daemonGone' };
      }
      try {
        const end = await this.serveOnce(endpoint, () => {
          attempt = 0;
        });
        if (end.code === CLOSE.daemonEnds) {
          return { kind: 'daemonEnded' };
        }
        if (end.code === CLOSE.replaced) {
          return { kind: 'replaced' };
        }
        this.options.log.info(`Lost the bridge of session ${endpoint.session} (code ${end.code})`);
      } catch (error) {
        if (isFinal(error)) {
          return { kind: 'refused', message: error.message };
        }
        this.options.log.info(`No connection to session ${endpoint.session}: ${String(error)}`);
      }
      if (this.isLeaving()) {
        break;
      }
      this.enter({ kind: 'connecting' });
      const pause = sleep(backoff(attempt, Math.random()), undefined, { signal: this.leaving.signal });
      await pause.catch(() => undefined);
    }
    return { kind: 'detached' };
  }

  /** Connects, registers and serves. Resolves when an established connection has ended. */
  private async serveOnce(endpoint: Endpoint, established: () => void): Promise<TransportEnd> {
    const { options } = this;
    const connection = new Connection(await options.connect(endpoint), options.dispatch, options.log);
    this.connection = connection;
    const ended = new Promise<TransportEnd>((resolve) => {
      connection.onEnd = resolve;
    });
    if (this.isLeaving()) {
      connection.close();
      return ended;
    }
    try {
      const hello = { protocol: PROTOCOL_VERSION, name: 'run-bridge for VS Code' };
      await connection.request('bridge/hello', hello, ANSWER_MS);
      const self = { runtimeId: options.runtimeId, ...options.registration() };
      await connection.request('runtime/register', self, ANSWER_MS);
    } catch (error) {
      connection.close();
      throw error;
    }
    established();
    this.enter({ kind: 'attached' });
    return ended;
  }

  private isLeaving(): boolean {
    return this.leaving.signal.aborted;
  }

  private enter(state: LinkState): void {
    if (this.current.kind === state.kind && state.kind !== 'ended') {
      return;
    }
    this.current = state;
    this.options.onState(state);
  }
}

/** Whether another attempt to connect would fail for the same reason. */
function isFinal(error: unknown): error is Error {
  return (
    (error instanceof RefusedError && [400, 401, 403, 404].includes(error.status)) ||
    (error instanceof AnsweredError && error.error.code === CODES.VersionMismatch)
  );
}
