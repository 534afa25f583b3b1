/** `vscode/showMessage`: shows a notification, with buttons if the caller gives some. */

import * as vscode from 'vscode';

import type { MessageLevel, ShowMessageResult } from '../bridge/protocol';
import type { Ctx } from '../ctx';
import { withoutCommandLinks } from './notificationText';
import { readShowMessageParams } from './params';
import { forPerson } from './waiting';

/** Maximum number of characters of a message. Longer ones are cut. */
const MESSAGE_LENGTH = 2_000;

type Show = (message: string, ...buttons: string[]) => Thenable<string | undefined>;

const SHOW: Readonly<Record<MessageLevel, Show>> = {
  info: vscode.window.showInformationMessage,
  warning: vscode.window.showWarningMessage,
  error: vscode.window.showErrorMessage,
};

/** Answers at once or, with buttons, when one is pressed or the message is dismissed. */
export async function showMessage(ctx: Ctx, params: unknown): Promise<ShowMessageResult> {
  const { message, level, buttons } = readShowMessageParams(params);
  const short = message.length > MESSAGE_LENGTH ? `${message.slice(0, MESSAGE_LENGTH)}…` : message;
  const shown = SHOW[level](withoutCommandLinks(short), ...buttons);
  if (buttons.length === 0) {
    return {};
  }
  const choice = await forPerson(ctx, { waitingFor: 'person' }, shown);
  return choice === undefined ? {} : { choice };
}
