/** The transport over a WebSocket. */

import WebSocket from 'ws';

import { MESSAGE_BYTES } from './protocol';
import { RefusedError, type Transport, type TransportEnd } from './transport';

/** The address of a daemon, and the token for hosts. */
export interface Endpoint {
  /** `ws://127.0.0.1:PORT/`, or `unix:PATH`. */
  readonly addr: string;
  readonly session: string;
  readonly hostToken: string;
}

/** Timeout of the handshake. A daemon on the same machine normally answers at once. */
const HANDSHAKE_MS = 5_000;

/** Connects as host. The token is sent in a header, so that it is in no URL. */
export function connectWebSocket(endpoint: Endpoint): Promise<Transport> {
  const socket = new WebSocket(url(endpoint.addr), {
    headers: {
      Authorization: `Bearer ${endpoint.hostToken}`,
      'X-Run-Bridge-Session': endpoint.session,
    },
    perMessageDeflate: false,
    maxPayload: MESSAGE_BYTES,
    handshakeTimeout: HANDSHAKE_MS,
  });
  return new Promise((resolve, reject) => {
    socket.once('unexpected-response', (_request, response) => {
      response.destroy();
      reject(new RefusedError(response.statusCode ?? 0));
    });
    // This listener stays for the life of the socket. After the handshake each error is followed by `close`, which
    // reports the end.
    socket.on('error', reject);
    socket.once('open', () => {
      resolve(new WebSocketTransport(socket));
    });
  });
}

class WebSocketTransport implements Transport {
  onMessage: (text: string) => void = () => undefined;
  onEnd: (end: TransportEnd) => void = () => undefined;

  constructor(private readonly socket: WebSocket) {
    // The daemon sends text frames only, and ws delivers each as one buffer.
    socket.on('message', (data: Buffer) => {
      this.onMessage(data.toString('utf8'));
    });
    socket.once('close', (code: number, reason: Buffer) => {
      this.onEnd({ code, reason: reason.toString('utf8') });
    });
  }

  send(text: string): void {
    if (this.socket.readyState === WebSocket.OPEN) {
      this.socket.send(text);
    }
  }

  close(): void {
    this.socket.close(1000);
  }
}

function url(addr: string): string {
  return addr.startsWith('unix:') ? `ws+unix:${addr.slice('unix:'.length)}:/` : addr;
}
