/** `vscode/executeCommand`: runs an editor command, if the policy allows it. */

import * as vscode from 'vscode';

import { BridgeError } from '../bridge/errors';
import type { ExecuteCommandResult } from '../bridge/protocol';
import { commandPolicy } from '../config';
import type { Ctx } from '../ctx';
import { decide } from './commandPolicy';
import { plain, revive } from './commandValues';
import { readExecuteCommandParams } from './params';
import { forPerson, whileWanted } from './waiting';

/** How many characters of the arguments the question shows. */
const SHOWN_ARGUMENTS = 200;

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
  const decision = ctx.grants.has(command) ? 'allow' : decide(command, commandPolicy());
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
  const asked = vscode.window.showWarningMessage(question(ctx, command, args), allow, allowAlways, deny);
  const choice = await forPerson(ctx, { waitingFor: 'person' }, asked);
  if (choice === allowAlways) {
    ctx.grants.add(command);
  } else if (choice !== allow) {
    const message = `The command ${command} was not executed: it was not allowed in the editor.`;
    throw new BridgeError('BlockedByUser', message, { reason: choice === deny ? 'denied' : 'dismissed' });
  }
}

function question({ source }: Ctx, command: string, args: readonly unknown[]): string {
  if (args.length === 0) {
    return vscode.l10n.t('The run of {0} wants to execute the command {1}.', source, command);
  }
  const text = JSON.stringify(args).slice(1, -1);
  const shown = text.length > SHOWN_ARGUMENTS ? `${text.slice(0, SHOWN_ARGUMENTS)}…` : text;
  return vscode.l10n.t('The run of {0} wants to execute the command {1} with {2}.', source, command, shown);
}
