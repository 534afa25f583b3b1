/**
 * `vscode/chat`: asks a language model of the editor and streams its answer.
 *
 * If no model answers (no model, no consent, a refusal), that is a result, not an error: it is marked `blocked` and has
 * a reason that a person can act on. Only real answers go into the history.
 */

import * as vscode from 'vscode';

import { BridgeError } from '../bridge/errors';
import type { ChatHistoryMessage, ChatResult } from '../bridge/protocol';
import { defaultModel } from '../config';
import type { Ctx } from '../ctx';
import { chooseModel } from './chatModel';
import { readChatParams } from './params';
import { forPerson } from './waiting';

/**
 * Assumed number of characters per token of a model. English has about four; a smaller number is on the safe side, and
 * nothing breaks if the limit is exceeded.
 */
const CHARACTERS_PER_TOKEN = 3;

export async function chat(ctx: Ctx, params: unknown): Promise<ChatResult> {
  const { message, model: wanted, conversationId = ctx.history.newConversationId() } = readChatParams(params);
  const blocked = (reason: string): ChatResult => {
    ctx.log.info(`A chat of ${ctx.source} was not answered: ${reason}`);
    return { response: '', conversationId, blocked: true, blockedReason: reason, openedChat: false };
  };

  const name = wanted ?? defaultModel();
  const offered = await offeredModels(name);
  ctx.signal.throwIfAborted();
  const choice = chooseModel(offered, name);
  if (choice.kind === 'none') {
    return blocked(
      'no model: sign in to a provider of language models, such as GitHub Copilot, in this window',
    );
  }
  if (choice.kind === 'unknown') {
    const known = offered.map((model) => model.id).join(', ');
    if (wanted !== undefined) {
      throw new BridgeError(
        'InvalidParams',
        `There is no language model "${wanted}" here: use one of ${known}.`,
      );
    }
    return blocked(
      `no model "${choice.wanted}", which evolve.chat.defaultModel names: choose one of ${known}`,
    );
  }

  const askedAt = Date.now();
  try {
    const room = choice.model.maxInputTokens * CHARACTERS_PER_TOKEN - message.length;
    const remembered = ctx.history.recent(conversationId, room);
    const response = await ask(ctx, choice.model, remembered, message);
    ctx.history.add(conversationId, message, response, askedAt, Date.now());
    return { response, conversationId };
  } catch (error) {
    ctx.signal.throwIfAborted();
    if (error instanceof vscode.LanguageModelError) {
      return blocked(reasonOf(error, choice.model));
    }
    throw error;
  }
}

/**
 * The models to choose from: the one with this id, or all. For each model that needs consent, the editor checks whether
 * it was given, which takes a tenth of a second.
 */
async function offeredModels(name: string): Promise<vscode.LanguageModelChat[]> {
  const named = name !== '' ? await vscode.lm.selectChatModels({ id: name }) : [];
  return named.length > 0 ? named : vscode.lm.selectChatModels();
}

/** Sends the conversation to the model, passes the answer on piece by piece, and returns all of it. */
async function ask(
  ctx: Ctx,
  model: vscode.LanguageModelChat,
  remembered: readonly ChatHistoryMessage[],
  message: string,
): Promise<string> {
  const cancellation = new vscode.CancellationTokenSource();
  const cancel = (): void => {
    cancellation.cancel();
  };
  ctx.signal.addEventListener('abort', cancel);
  try {
    const messages = [...remembered.map(toModelMessage), vscode.LanguageModelChatMessage.User(message)];
    const justification = vscode.l10n.t('The run of {0} asks a language model.', ctx.source);
    // The editor may ask the person for consent first.
    const request = model.sendRequest(messages, { justification }, cancellation.token);
    const answer = await forPerson(ctx, { text: '' }, request);
    let response = '';
    for await (const text of answer.text) {
      ctx.signal.throwIfAborted();
      response += text;
      ctx.progress({ text });
    }
    // A cancelled model may end its answer early, as if it were complete.
    ctx.signal.throwIfAborted();
    return response;
  } finally {
    ctx.signal.removeEventListener('abort', cancel);
    cancellation.dispose();
  }
}

function toModelMessage({ role, content }: ChatHistoryMessage): vscode.LanguageModelChatMessage {
  return role === 'user'
    ? vscode.LanguageModelChatMessage.User(content)
    : vscode.LanguageModelChatMessage.Assistant(content);
}

function reasonOf(error: vscode.LanguageModelError, model: vscode.LanguageModelChat): string {
  switch (error.code) {
    case vscode.LanguageModelError.NoPermissions.name:
      return `no consent: the use of ${model.name} was not allowed in this window`;
    case vscode.LanguageModelError.NotFound.name:
      return `no model: ${model.name} is no longer available in this window`;
    case vscode.LanguageModelError.Blocked.name:
      return `refused: ${model.name} says "${error.message}"`;
    default:
      return `failed: ${model.name} says "${error.message}"`;
  }
}
