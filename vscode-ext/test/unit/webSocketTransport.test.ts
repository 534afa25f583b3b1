import assert from 'node:assert/strict';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';

import { WebSocketServer } from 'ws';

import { connectWebSocket } from '../../src/bridge/webSocketTransport';

/** A server that accepts one connection, for as long as `use` runs. */
async function withServer(
  listen: { unix?: string; refuse?: number },
  use: (server: WebSocketServer, addr: string, requests: IncomingMessage[]) => Promise<void>,
): Promise<void> {
  const requests: IncomingMessage[] = [];
  const http = createServer();
  const server = new WebSocketServer({ noServer: true });
  http.on('upgrade', (request, socket, head) => {
    requests.push(request);
    if (listen.refuse !== undefined) {
      socket.end(`HTTP/1.1 ${listen.refuse} No\r\nConnection: close\r\n\r\n`);
      return;
    }
    server.handleUpgrade(request, socket, head, (opened) => server.emit('connection', opened));
  });
  await new Promise<void>((resolve) => {
    http.listen(listen.unix ?? { port: 0, host: '127.0.0.1' }, resolve);
  });
  const addr =
    listen.unix === undefined
      ? `ws://127.0.0.1:${(http.address() as AddressInfo).port}/`
      : `unix:${listen.unix}`;
  try {
    await use(server, addr, requests);
  } finally {
    server.clients.forEach((client) => {
      client.terminate();
    });
    http.close();
  }
}

test('the token travels in a header, and there is no origin', async () => {
  await withServer({}, async (_server, addr, requests) => {
    const transport = await connectWebSocket({ addr, session: 's1', hostToken: 't1' });
    assert.equal(requests[0]?.url, '/');
    const headers = requests[0].headers;
    assert.equal(headers.authorization, 'Bearer t1');
    assert.equal(headers['x-run-bridge-session'], 's1');
    assert.equal(headers.origin, undefined);
    assert.equal(headers['sec-websocket-extensions'], undefined);
    transport.close();
  });
});

test('texts go both ways, and the end has its code', async () => {
  await withServer({}, async (server, addr) => {
    server.on('connection', (socket) => {
      socket.on('message', (data: Buffer) => {
        socket.send(`echo ${data.toString()}`);
      });
    });
    const transport = await connectWebSocket({ addr, session: 's', hostToken: 't' });
    const echoed = new Promise((resolve) => {
      transport.onMessage = resolve;
    });
    transport.send('häh?');
    assert.equal(await echoed, 'echo häh?');
    const ended = new Promise((resolve) => {
      transport.onEnd = resolve;
    });
    server.clients.forEach((client) => {
      client.close(4409, 'replaced');
    });
    assert.deepEqual(await ended, { code: 4409, reason: 'replaced' });
    transport.send('nobody hears this, and nothing throws');
  });
});

test('a refusal tells its status', async () => {
  await withServer({ refuse: 401 }, async (_server, addr) => {
    await assert.rejects(connectWebSocket({ addr, session: 's', hostToken: 't' }), {
      name: 'RefusedError',
      status: 401,
    });
  });
});

test('nobody listens', async () => {
  let gone = '';
  await withServer({}, (_server, addr) => {
    gone = addr;
    return Promise.resolve();
  });
  await assert.rejects(connectWebSocket({ addr: gone, session: 's', hostToken: 't' }), {
    code: 'ECONNREFUSED',
  });
});

test('a Unix socket serves as well', async () => {
  const directory = mkdtempSync(path.join(os.tmpdir(), 'run-bridge-unit-'));
  try {
    await withServer({ unix: path.join(directory, 's.sock') }, async (_server, addr, requests) => {
      (await connectWebSocket({ addr, session: 's', hostToken: 't' })).close();
      assert.equal(requests[0]?.url, '/');
    });
  } finally {
    rmSync(directory, { recursive: true });
  }
});
