/** The context of handlers, and what the parts of the extension share. */

import type * as vscode from 'vscode';

import type { Log } from './bridge/connection';
import type { ChatHistory } from './handlers/chatHistory';

/** The context of one request. */
export interface Ctx {
  readonly log: Log;
  /** The history of the window: conversations outlive the run that began them. */
  readonly history: ChatHistory;
  /** The name of the net that sent the request, for messages to the person. */
  readonly source: string;
  /** Editor commands, each with its arguments, that the person has allowed for the rest of this run. */
  readonly grants: Set<string>;
  /** Aborted when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
  /** Sends a piece of the answer, or just a sign of life, before the result. */
  readonly progress: (value: unknown) => void;
}

/** The services that all requests and runs of a window share. */
export interface Window {
  readonly extension: vscode.ExtensionContext;
  readonly log: vscode.LogOutputChannel;
  readonly history: ChatHistory;
}
