/** The table of handlers. Requests of runs and of the debug adapter both come here. */

import { unknownMethod } from '../bridge/errors';
import { canonicalMethod, type Method } from '../bridge/protocol';
import type { Ctx } from '../ctx';
import { chat } from './chat';
import { getChatHistory } from './chatHistory';
import { executeCommand } from './executeCommand';
import { showMessage } from './showMessage';

/** Serves one request. A thrown value becomes the caller's error. */
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
