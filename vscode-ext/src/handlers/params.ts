/** Checks the parameters of requests. Each error names the parameter and what it should be. */

import { BridgeError } from '../bridge/errors';
import type {
  ChatHistoryParams,
  ChatParams,
  ExecuteCommandParams,
  MessageLevel,
  ShowMessageParams,
} from '../bridge/methods/vscode';
import { isObject } from '../bridge/protocol';

/** Parameters with defaults filled in, and without the timeout, which the connection handles. */
type Complete<Params> = Required<Omit<Params, 'timeout'>>;

const LEVELS: readonly MessageLevel[] = ['info', 'warning', 'error'];

/** How many messages of a conversation are returned when the caller gives no limit. */
const HISTORY_LIMIT = 10;

export function readChatParams(params: unknown): Omit<ChatParams, 'timeout'> {
  const members = object(params);
  const model = optionalText(members, 'model');
  const conversationId = optionalText(members, 'conversationId');
  return {
    message: text(members, 'message'),
    ...(model === undefined ? {} : { model }),
    ...(conversationId === undefined ? {} : { conversationId }),
  };
}

export function readShowMessageParams(params: unknown): Complete<ShowMessageParams> {
  const members = object(params);
  const buttons = members['buttons'] ?? [];
  if (!Array.isArray(buttons) || !buttons.every((button) => typeof button === 'string' && button !== '')) {
    throw new BridgeError('InvalidParams', 'The parameter buttons must be an array of texts.');
  }
  return {
    message: text(members, 'message'),
    // An unknown level is shown as info: callers of the original project rely on it.
    level: LEVELS.find((level) => level === members['level']) ?? 'info',
    buttons: buttons as string[],
  };
}

export function readExecuteCommandParams(params: unknown): Complete<ExecuteCommandParams> {
  const members = object(params);
  const args = members['args'] ?? [];
  if (!Array.isArray(args)) {
    throw new BridgeError('InvalidParams', 'The parameter args must be an array.');
  }
  return { command: text(members, 'command'), args };
}

export function readChatHistoryParams(params: unknown): Complete<ChatHistoryParams> {
  const members = object(params);
  const limit = members['limit'] ?? HISTORY_LIMIT;
  if (typeof limit !== 'number' || limit < 0) {
    throw new BridgeError('InvalidParams', 'The parameter limit must be a number that is not negative.');
  }
  return { conversationId: text(members, 'conversationId'), limit: Math.floor(limit) };
}

function object(params: unknown): Record<string, unknown> {
  if (params === undefined || params === null) {
    return {};
  }
  if (!isObject(params)) {
    throw new BridgeError('InvalidParams', 'The parameters must be an object.');
  }
  return params;
}

function text(members: Record<string, unknown>, name: string): string {
  const value = optionalText(members, name);
  if (value === undefined) {
    throw new BridgeError('InvalidParams', `Missing ${name} parameter: it must be a text that is not empty.`);
  }
  return value;
}

function optionalText(members: Record<string, unknown>, name: string): string | undefined {
  const value = members[name] ?? '';
  if (typeof value !== 'string') {
    throw new BridgeError('InvalidParams', `The parameter ${name} must be a text.`);
  }
  return value === '' ? undefined : value;
}
