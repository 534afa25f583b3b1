/** `bridge/*`, which the daemon answers itself, and the notifications. */

import type { RuntimeInfo } from './runtime';

export type Right = 'chat' | 'read' | 'write' | 'run' | 'editor';

export interface HelloParams {
  readonly protocol: number;
  readonly name?: string;
  /** The runtime for requests of this connection that name none. */
  readonly runtimeId?: string;
  /** Requests of this connection that name no runtime go to the one that has this path open. */
  readonly path?: string;
}

export interface HelloResult {
  readonly protocol: number;
  readonly version: string;
  readonly session: string;
  readonly role: 'client' | 'host';
  /** Rights of the client token. Absent for hosts. */
  readonly rights?: readonly Right[];
}

export interface CreateClientTokenParams {
  readonly role: 'client';
  readonly rights: readonly Right[];
}

export interface CreateHostTokenParams {
  readonly role: 'host';
  readonly runtimeIds: readonly string[];
  /** Names of methods, or families such as `file/*`. */
  readonly tools: readonly string[];
}

export type CreateTokenParams = CreateClientTokenParams | CreateHostTokenParams;

export interface CreateTokenResult {
  readonly token: string;
}

export interface StatusResult {
  readonly version: string;
  readonly session: string;
  readonly pid: number;
  readonly uptime: number;
  readonly clients: number;
  readonly runtimes: readonly RuntimeInfo[];
  readonly inFlight: number;
  readonly queuedBytes: number;
  readonly operations: number;
  readonly counters: Readonly<Record<string, number>>;
}

/** A request that has ended, as `bridge/tail` reports it. Never contains parameters or results. */
export interface RequestRecord {
  readonly request: number;
  readonly client: number;
  readonly method: string;
  /** `ok`, the name of an error kind, or `error N` for a host's own code. */
  readonly outcome: string;
  readonly waitMs: number;
  readonly hostMs: number;
  readonly requestBytes: number;
  readonly responseBytes: number;
  readonly clientName?: string;
  readonly runtimeId?: string;
}

export interface CancelParams {
  readonly id: number | string;
  /** From the daemon to a host: `RequestCancelled`, `Timeout`, `CallerGone` or `ShuttingDown`. */
  readonly reason?: string;
}

export interface ProgressParams {
  readonly id: number | string;
  readonly value: unknown;
}
