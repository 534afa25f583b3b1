/** The table of handlers. The bridge of a run and the debug adapter both end here. */

import { unknownMethod } from '../bridge/errors';
import { canonicalMethod, type Method } from '../bridge/protocol';
import type { Ctx } from '../ctx';
import { chat } from './chat';
import { getChatHistory } from './chatHistory';
import { executeCommand } from './executeCommand';
import { showMessage } from './showMessage';

/** Carries out one request for whoever asked. What it throws is the caller's error. */
export type Handler = (ctx: Ctx, params: unknown) => Promise<object>;

const HANDLERS: Readonly<Record<Method, Handler>> = {
  'vscode/chat': chat,
  'vscode/showMessage': showMessage,
  'vscode/executeCommand': executeCommand,
  'vscode/getChatHistory': getChatHistory,
};

export async function handle(ctx: Ctx, name: string, params: unknown): Promise<object> {
  const method = canonicalMethod(name);
  if (!method) {
    throw unknownMethod(name);
  }
  return HANDLERS[method](ctx, params);
}
