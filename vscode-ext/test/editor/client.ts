/** A minimal client of the bridge, which sends the requests of a run. */

import { readFileSync } from 'node:fs';
import path from 'node:path';

import WebSocket from 'ws';

import { locateDirectory } from '../../src/bridge/connectionFile';

export interface Answer {
  readonly id: number;
  readonly result?: unknown;
  readonly error?: {
    readonly code: number;
    readonly message: string;
    readonly data: Record<string, unknown>;
  };
}

export class Client {
  /** Values of `$/progress`, by the id of their request. */
  readonly progress = new Map<number, unknown[]>();
  private lastId = 0;
  private readonly waiting = new Map<number, (answer: Answer) => void>();
  private readonly watching: (() => void)[] = [];

  private constructor(private readonly socket: WebSocket) {
    socket.on('message', (data: Buffer) => {
      const message = JSON.parse(data.toString()) as Answer & {
        method?: string;
        params?: { id: number; value: unknown };
      };
      if (message.method === '$/progress' && message.params) {
        const { id, value } = message.params;
        this.progress.set(id, [...(this.progress.get(id) ?? []), value]);
        this.watching.splice(0).forEach((look) => {
          look();
        });
      } else {
        this.waiting.get(message.id)?.(message);
      }
    });
  }

  /** Connects with the token of the run. */
  static async connect(session: string): Promise<Client> {
    const file = path.join(locateDirectory(process.env), `${session}.json`);
    const { addr, token } = JSON.parse(readFileSync(file, 'utf8')) as { addr: string; token: string };
    const socket = new WebSocket(addr, { headers: { Authorization: `Bearer ${token}` } });
    await new Promise((resolve, reject) => {
      socket.once('open', resolve);
      socket.once('error', reject);
    });
    return new Client(socket);
  }

  /** Sends a request; its answer comes later. */
  send(method: string, params: object = {}): { id: number; answer: Promise<Answer> } {
    const id = ++this.lastId;
    const answer = new Promise<Answer>((resolve) => this.waiting.set(id, resolve));
    this.socket.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
    return { id, answer };
  }

  ask(method: string, params: object = {}): Promise<Answer> {
    return this.send(method, params).answer;
  }

  /** Waits for the result. Throws if the answer is an error. */
  async result<T>(method: string, params: object = {}): Promise<T> {
    const answer = await this.ask(method, params);
    if (answer.error) {
      throw new Error(`${method} failed: ${JSON.stringify(answer.error)}`);
    }
    return answer.result as T;
  }

  cancel(id: number): void {
    this.socket.send(JSON.stringify({ jsonrpc: '2.0', method: '$/cancelRequest', params: { id } }));
  }

  /** Waits for the first progress of a request. */
  async progressOf(id: number): Promise<unknown> {
    while (!this.progress.has(id)) {
      await new Promise<void>((resolve) => this.watching.push(resolve));
    }
    return this.progress.get(id)?.[0];
  }

  close(): void {
    this.socket.close();
  }
}
