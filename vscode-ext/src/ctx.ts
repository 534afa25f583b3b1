/** What handlers may use, and what the parts of the extension share. */

import type * as vscode from 'vscode';

import type { Log } from './bridge/connection';
import type { ChatHistory } from './handlers/chatHistory';

/** One for each request. */
export interface Ctx {
  readonly log: Log;
  /** Of the window: conversations outlive the run that began them. */
  readonly history: ChatHistory;
  /** What asks, as the person knows it: the name of the net. */
  readonly source: string;
  /** Commands that the person has allowed for the rest of this run. */
  readonly grants: Set<string>;
  /** Aborted when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
  /** Sends a piece of the answer, or a sign of life, ahead of the result. */
  readonly progress: (value: unknown) => void;
}

/** One for each window. */
export interface Window {
  readonly extension: vscode.ExtensionContext;
  readonly log: vscode.LogOutputChannel;
  readonly history: ChatHistory;
}
