/** The menus behind the status bar item and the commands that need a choice. */

import * as vscode from 'vscode';

import type { ConnectionFile } from '../bridge/connectionFile';
import { isNetFile } from '../launch/net';
import type { Run } from './run';
import type { Runs } from './runs';

interface Entry extends vscode.QuickPickItem {
  readonly run?: () => unknown;
}

export async function showRunMenu(runs: Runs, showLog: () => void): Promise<void> {
  const command =
    (name: string, ...args: unknown[]) =>
    (): unknown =>
      vscode.commands.executeCommand(name, ...args);
  const file = activeNet();
  const name = file?.path.split('/').at(-1) ?? '';
  const entries: Entry[] = [];
  if (file) {
    entries.push(
      { label: `$(play) ${vscode.l10n.t('Run {0}', name)}`, run: command('evolve.runNet', file) },
      { label: `$(debug-alt) ${vscode.l10n.t('Debug {0}', name)}`, run: command('evolve.debugNet', file) },
    );
  }
  for (const run of runs.running) {
    const { terminal } = run.parts;
    entries.push({ label: run.name, kind: vscode.QuickPickItemKind.Separator });
    entries.push({
      label: `$(debug-stop) ${vscode.l10n.t('Stop {0}', run.name)}`,
      description: describe(run),
      run: () => runs.stop(run),
    });
    if (terminal) {
      entries.push({
        label: `$(terminal) ${vscode.l10n.t('Show the terminal of {0}', run.name)}`,
        run: () => {
          terminal.show();
        },
      });
    }
  }
  const attachable = runs.attachable();
  if (attachable.length > 0) {
    entries.push({ label: vscode.l10n.t('other windows'), kind: vscode.QuickPickItemKind.Separator });
    entries.push(
      ...attachable.map((other) => ({
        label: `$(plug) ${vscode.l10n.t('Answer {0} in this window', other.name)}`,
        description: sessionOf(other.file),
        run: () => {
          runs.attach(other.file);
        },
      })),
    );
  }
  entries.push(
    { label: vscode.l10n.t('bridge'), kind: vscode.QuickPickItemKind.Separator },
    { label: `$(output) ${vscode.l10n.t('Show Log')}`, run: showLog },
    {
      label: `$(gear) ${vscode.l10n.t('Settings')}`,
      run: command('workbench.action.openSettings', '@ext:run-bridge.run-bridge'),
    },
  );
  const choice = await vscode.window.showQuickPick(entries, {
    title: 'Run Bridge',
    placeHolder: placeholder(file, runs),
  });
  await choice?.run?.();
}

/** Lets the person choose among several runs. */
export async function pickRun(runs: readonly Run[]): Promise<Run | undefined> {
  if (runs.length <= 1) {
    return runs[0];
  }
  const entries = runs.map((run) => ({ label: run.name, description: describe(run), run }));
  return (await vscode.window.showQuickPick(entries, { title: vscode.l10n.t('Stop which run?') }))?.run;
}

/** Lets the person choose among runs of other windows. */
export async function pickAttachable(runs: Runs): Promise<ConnectionFile | undefined> {
  const entries = runs
    .attachable()
    .map(({ name, file }) => ({ label: name, description: sessionOf(file), file }));
  if (entries.length === 0) {
    void vscode.window.showInformationMessage(
      vscode.l10n.t('No other run in this folder waits for an editor.'),
    );
    return undefined;
  }
  const title = vscode.l10n.t('Answer which run in this window?');
  return (await vscode.window.showQuickPick(entries, { title }))?.file;
}

/**
 * The net in the active tab, if it shows one. `activeTextEditor` is not used: it is undefined until the text of the tab
 * is loaded, which takes seconds on a slow machine.
 */
export function activeNet(): vscode.Uri | undefined {
  const uri = uriOf(vscode.window.tabGroups.activeTabGroup.activeTab?.input);
  return uri && isNetFile(uri.path) ? uri : undefined;
}

function uriOf(input: unknown): vscode.Uri | undefined {
  if (input instanceof vscode.TabInputText || input instanceof vscode.TabInputCustom) {
    return input.uri;
  }
  return input instanceof vscode.TabInputTextDiff ? input.modified : undefined;
}

function sessionOf({ session }: { readonly session: string }): string {
  return vscode.l10n.t('session {0}', session);
}

function describe(run: Run): string {
  switch (run.state.kind) {
    case 'starting':
      return vscode.l10n.t('starting');
    case 'alone':
      return vscode.l10n.t('without a bridge');
    case 'bridged':
      return run.state.answering ? sessionOf(run.parts) : vscode.l10n.t('connecting');
    case 'elsewhere':
      return vscode.l10n.t('answered by another window');
    case 'ended':
      return vscode.l10n.t('ended');
  }
}

function placeholder(file: vscode.Uri | undefined, runs: Runs): string {
  if (runs.running.length > 0) {
    return vscode.l10n.t('{0} running', runs.running.length);
  }
  return file
    ? vscode.l10n.t('Nothing is running')
    : vscode.l10n.t('Open a *.evolve.yaml or *.pnml.yaml file to run it.');
}
