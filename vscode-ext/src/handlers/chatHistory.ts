/**
 * What was said in the conversations of this window. It lives in memory only: prompts are the
 * user's own and are not written anywhere.
 */

import { randomUUID } from 'node:crypto';

import type { ChatHistoryMessage, ChatHistoryResult } from '../bridge/protocol';
import type { Ctx } from '../ctx';
import { readChatHistoryParams } from './params';

/** Conversations kept; the one that was used longest ago is forgotten first. */
const CONVERSATIONS = 200;

/** Messages kept of one conversation; the oldest are forgotten first. */
const MESSAGES = 400;

export class ChatHistory {
  /** In the order of their last use. */
  private readonly conversations = new Map<string, ChatHistoryMessage[]>();

  newConversationId(): string {
    return `conv-${randomUUID()}`;
  }

  /** Everything that is kept of a conversation, oldest first. */
  messages(conversationId: string): readonly ChatHistoryMessage[] {
    return this.conversations.get(conversationId) ?? [];
  }

  /** The newest questions and answers that fit into this many characters. */
  recent(conversationId: string, characters: number): readonly ChatHistoryMessage[] {
    const messages = this.messages(conversationId);
    let room = characters;
    let start = messages.length;
    while (start > 0) {
      const turn = messages.slice(start - 2, start);
      room -= turn.reduce((length, { content }) => length + content.length, 0);
      if (room < 0) {
        break;
      }
      start -= turn.length;
    }
    return messages.slice(start);
  }

  /** Adds a question and its answer together, so that no question stands alone. */
  add(conversationId: string, question: string, answer: string, askedAt: number, answeredAt: number): void {
    const messages = [
      ...this.messages(conversationId),
      { role: 'user', content: question, timestamp: askedAt },
      { role: 'assistant', content: answer, timestamp: answeredAt },
    ] satisfies ChatHistoryMessage[];
    this.conversations.delete(conversationId);
    this.conversations.set(conversationId, messages.slice(-MESSAGES));
    const oldest = this.conversations.keys().next();
    if (this.conversations.size > CONVERSATIONS && oldest.done === false) {
      this.conversations.delete(oldest.value);
    }
  }
}

/** `vscode/getChatHistory`: the newest messages, oldest first. An unknown conversation is empty. */
export function getChatHistory(ctx: Pick<Ctx, 'history'>, params: unknown): Promise<ChatHistoryResult> {
  const { conversationId, limit } = readChatHistoryParams(params);
  const messages = ctx.history.messages(conversationId);
  return Promise.resolve({ messages: messages.slice(messages.length - Math.min(limit, messages.length)) });
}
