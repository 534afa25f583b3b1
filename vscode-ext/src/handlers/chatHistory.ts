/**
 * The messages of the conversations of this window. They are kept in memory only: prompts are private to the user, and
 * are not written to disk.
 */

import { randomUUID } from 'node:crypto';

import type { ChatHistoryMessage, ChatHistoryResult } from '../bridge/protocol';
import type { Ctx } from '../ctx';
import { readChatHistoryParams } from './params';

/** How many conversations are kept. The one that was not used for the longest time is dropped first. */
const CONVERSATIONS = 200;

/** How many messages of a conversation are kept. The oldest are dropped first. */
const MESSAGES = 400;

export class ChatHistory {
  /** The conversations in the order of their last use. */
  private readonly conversations = new Map<string, ChatHistoryMessage[]>();

  newConversationId(): string {
    return `conv-${randomUUID()}`;
  }

  /** All messages that are kept of a conversation, oldest first. */
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

  /** Adds a question and its answer together, so that there is no question without an answer. */
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
