/**
 * A host made of the extension's own connection, without an editor. It returns the params of each request, so that a
 * benchmark measures the connection alone. Reads the daemon's ready line from stdin.
 */

import { createInterface } from 'node:readline/promises';

import { Connection } from '../../src/bridge/connection';
import { connectWebSocket, type Endpoint } from '../../src/bridge/webSocketTransport';

const REGISTER_MS = 10_000;

async function serve(): Promise<void> {
  const lines = createInterface({ input: process.stdin });
  for await (const line of lines) {
    const endpoint = JSON.parse(line) as Endpoint;
    const silent = {
      debug: () => undefined,
      info: () => undefined,
      warn: () => undefined,
      error: console.error,
    };
    const transport = await connectWebSocket(endpoint);
    const connection = new Connection(transport, (_method, params) => Promise.resolve(params), silent);
    const registration = { title: 'benchmark', methods: ['vscode/chat'] };
    await connection.request('runtime/register', registration, REGISTER_MS);
    console.log('ready');
  }
}

void serve();
