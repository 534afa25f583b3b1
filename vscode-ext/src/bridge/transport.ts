/** How texts travel. A connection knows only this; tests give it a transport without a socket. */
export interface Transport {
  /** Called for each text that arrives. Set it before the first turn of the event loop ends. */
  onMessage: (text: string) => void;
  /** Called once, when nothing will arrive any more. */
  onEnd: (end: TransportEnd) => void;
  send(text: string): void;
  /** Ends the transport from our side; `onEnd` follows. */
  close(): void;
}

/** Why a transport ended. */
export interface TransportEnd {
  /** WebSocket close code; 1006 when the other side vanished without one. */
  readonly code: number;
  readonly reason: string;
}

/** Close codes that decide whether a host comes back. */
export const CLOSE = {
  daemonEnds: 1001,
  /** A newer registration of the same runtime took our place. */
  replaced: 4409,
} as const;

/** The daemon refused the handshake: with this status, it will refuse the next one too. */
export class RefusedError extends Error {
  override readonly name = 'RefusedError';

  constructor(readonly status: number) {
    super(`the bridge refused the connection with HTTP status ${status}`);
  }
}
