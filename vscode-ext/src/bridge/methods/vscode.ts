/** `vscode/*`: chat, messages and editor commands, which a window serves. */

/** A question for the language model. */
export interface ChatParams {
  readonly message: string;
  /** Milliseconds. */
  readonly timeout?: number;
  /** The model, by id or by a part of its name. */
  readonly model?: string;
  /** The conversation to continue. */
  readonly conversationId?: string;
}

/** The answer. A refusal is a result, not an error. */
export interface ChatResult {
  readonly response: string;
  readonly conversationId?: string;
  /** True if no model answered. */
  readonly blocked?: boolean;
  readonly blockedReason?: string;
  readonly openedChat?: boolean;
}

export interface TextProgress {
  readonly text: string;
}

export type MessageLevel = 'info' | 'warning' | 'error';

export interface ShowMessageParams {
  readonly message: string;
  /** `info` when absent. */
  readonly level?: MessageLevel;
  readonly buttons?: readonly string[];
  readonly timeout?: number;
}

export interface ShowMessageResult {
  /** The button that was pressed. Absent without buttons, and when the message was dismissed. */
  readonly choice?: string;
}

export interface ExecuteCommandParams {
  readonly command: string;
  readonly args?: readonly unknown[];
  readonly timeout?: number;
}

export interface ExecuteCommandResult {
  /** Absent when the command returned nothing. */
  readonly result?: unknown;
}

export interface ChatHistoryParams {
  readonly conversationId: string;
  readonly limit?: number;
}

export interface ChatHistoryMessage {
  readonly role: 'user' | 'assistant';
  readonly content: string;
  /** Milliseconds since 1970. */
  readonly timestamp: number;
}

export interface ChatHistoryResult {
  /** Oldest first. */
  readonly messages: readonly ChatHistoryMessage[];
}
