/** `vscode/executeCommand`: runs an editor command, if the policy allows it. */

import * as vscode from 'vscode';

import { BridgeError } from '../bridge/errors';
import type { ExecuteCommandResult } from '../bridge/protocol';
import { commandPolicy } from '../config';
import type { Ctx } from '../ctx';
import { decide } from './commandPolicy';
import { grantOf, showCommand, type ShownCommand } from './commandQuestion';
import { plain, revive } from './commandValues';
import { withoutCommandLinks } from './notificationText';
import { readExecuteCommandParams } from './params';
import { forPerson, whileWanted } from './waiting';

export async function executeCommand(ctx: Ctx, params: unknown): Promise<ExecuteCommandResult> {
  const request = readExecuteCommandParams(params);
  const { command } = request;
  await authorise(ctx, request);
  const args = request.args.map(revive);
  let result: unknown;
  try {
    // Commands cannot be cancelled. When nobody waits any more, the result is dropped.
    result = await whileWanted(ctx.signal, vscode.commands.executeCommand(command, ...args));
  } catch (error) {
    ctx.signal.throwIfAborted();
    throw new BridgeError('CommandFailed', error instanceof Error ? error.message : String(error));
  }
  const value = plain(result);
  return value === undefined ? {} : { result: value };
}

async function authorise(
  ctx: Ctx,
  { command, args }: ReturnType<typeof readExecuteCommandParams>,
): Promise<void> {
  const grant = grantOf(command, args);
  const decision = ctx.grants.has(grant) ? 'allow' : decide(command, commandPolicy());
  if (decision === 'allow') {
    return;
  }
  if (decision === 'deny') {
    const reason = vscode.workspace.isTrusted
      ? 'the setting evolve.commands.policy forbids it'
      : 'the workspace is not trusted';
    throw new BridgeError('NotAllowed', `The command ${command} was not executed: ${reason}.`);
  }
  const [allow, allowAlways, deny] = [
    vscode.l10n.t('Allow'),
    vscode.l10n.t('Allow for This Run'),
    vscode.l10n.t('Deny'),
  ];
  const shown = showCommand(command, args);
  if (!shown.fits) {
    const show = vscode.l10n.t('Show Command');
    const text = vscode.l10n.t(
      'The run of {0} wants to execute a command that is too long to be shown here.',
      ctx.source,
    );
    const choice = await ask(ctx, text, show, deny);
    if (choice !== show) {
      throw blocked(command, choice === deny);
    }
    const content = JSON.stringify({ command, args }, undefined, 2);
    await vscode.window.showTextDocument(
      await vscode.workspace.openTextDocument({ content, language: 'json' }),
    );
  }
  const choice = await ask(ctx, question(ctx.source, shown), allow, allowAlways, deny);
  if (choice === allowAlways) {
    ctx.grants.add(grant);
  } else if (choice !== allow) {
    throw blocked(command, choice === deny);
  }
}

function ask(ctx: Ctx, text: string, ...buttons: string[]): Promise<string | undefined> {
  const asked = vscode.window.showWarningMessage(withoutCommandLinks(text), ...buttons);
  return forPerson(ctx, { waitingFor: 'person' }, asked);
}

function blocked(command: string, denied: boolean): BridgeError {
  const message = `The command ${command} was not executed: it was not allowed in the editor.`;
  return new BridgeError('BlockedByUser', message, { reason: denied ? 'denied' : 'dismissed' });
}

function question(source: string, { command, args, fits }: ShownCommand): string {
  if (!fits) {
    return vscode.l10n.t('The run of {0} wants to execute the command that the editor shows.', source);
  }
  return args === ''
    ? vscode.l10n.t('The run of {0} wants to execute the command {1}.', source, command)
    : vscode.l10n.t('The run of {0} wants to execute the command {1} with {2}.', source, command, args);
}
