/** A transport without a socket. The test acts as the daemon. */

import { setImmediate as turn } from 'node:timers/promises';

import type { Log } from '../../src/bridge/connection';
import type { Transport, TransportEnd } from '../../src/bridge/transport';

interface Sent {
  readonly id?: number | string;
  readonly method?: string;
  readonly params?: Record<string, unknown>;
  readonly result?: unknown;
  readonly error?: { code: number; message: string; data: Record<string, unknown> };
}

export class MemoryTransport implements Transport {
  onMessage: (text: string) => void = () => undefined;
  onEnd: (end: TransportEnd) => void = () => undefined;
  readonly sent: Sent[] = [];
  private waiting: { test: (message: Sent) => boolean; resolve: (message: Sent) => void }[] = [];

  send(text: string): void {
    const message = JSON.parse(text) as Sent;
    this.sent.push(message);
    for (const waiter of this.waiting.filter(({ test }) => test(message))) {
      waiter.resolve(message);
    }
  }

  close(): void {
    this.end(1000);
  }

  receive(message: object): void {
    this.onMessage(JSON.stringify({ jsonrpc: '2.0', ...message }));
  }

  end(code: number): void {
    this.onEnd({ code, reason: '' });
  }

  /** Waits for a request of this method, unless it has already come, and answers it. */
  async answer(method: string, result: object): Promise<Sent> {
    const request = await this.sees(method, (message) => message.method === method);
    this.receive({ id: request.id, ...result });
    await turn();
    return request;
  }

  /** Waits for the first matching message, unless it has already come. */
  sees(what: string, test: (message: Sent) => boolean): Promise<Sent> {
    const found = this.sent.find(test);
    if (found) {
      return Promise.resolve(found);
    }
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(new Error(`waited for ${what}, saw ${JSON.stringify(this.sent)}`));
      }, 5_000);
      this.waiting.push({
        test,
        resolve: (message) => {
          clearTimeout(timer);
          resolve(message);
        },
      });
    });
  }

  /** The answer to a request that the test has sent. */
  answerTo(id: number | string): Promise<Sent> {
    return this.sees(`the answer to ${id}`, (message) => message.id === id && message.method === undefined);
  }
}

/** A log that can be read. */
export function memoryLog(): Log & { lines: string[] } {
  const lines: string[] = [];
  const add = (message: string): void => {
    lines.push(message);
  };
  return { lines, debug: add, info: add, warn: add, error: add };
}
