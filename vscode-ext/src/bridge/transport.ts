/** Sends and receives texts. A connection knows only this interface; tests use a transport without a socket. */
export interface Transport {
  /** Called for each text that arrives. Must be set before the first turn of the event loop ends. */
  onMessage: (text: string) => void;
  /** Called once, when the transport has ended. */
  onEnd: (end: TransportEnd) => void;
  send(text: string): void;
  /** Ends the transport. `onEnd` is called later. */
  close(): void;
}

/** Why a transport ended. */
export interface TransportEnd {
  /** WebSocket close code; 1006 if the other side has gone without a close frame. */
  readonly code: number;
  readonly reason: string;
}

/** Close codes that decide whether a host reconnects. */
export const CLOSE = {
  daemonEnds: 1001,
  /** A newer registration of the same runtime has replaced this connection. */
  replaced: 4409,
} as const;

/** The daemon refused the handshake with this status, and would refuse the next one, too. */
export class RefusedError extends Error {
  override readonly name = 'RefusedError';

  constructor(readonly status: number) {
    super(`the bridge refused the connection with HTTP status ${status}`);
  }
}
