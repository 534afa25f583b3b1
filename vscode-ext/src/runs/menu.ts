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
      { label: `$(play) Run ${name}`, run: command('evolve.runNet', file) },
      { label: `$(debug-alt) Debug ${name}`, run: command('evolve.debugNet', file) },
    );
  }
  for (const run of runs.running) {
    const { terminal } = run.parts;
    entries.push({ label: run.name, kind: vscode.QuickPickItemKind.Separator });
    entries.push({
      label: `$(debug-stop) Stop ${run.name}`,
      description: describe(run),
      run: () => runs.stop(run),
    });
    if (terminal) {
      entries.push({
        label: `$(terminal) Show the terminal of ${run.name}`,
        run: () => {
          terminal.show();
        },
      });
    }
  }
  const attachable = runs.attachable();
  if (attachable.length > 0) {
    entries.push({ label: 'other windows', kind: vscode.QuickPickItemKind.Separator });
    entries.push(
      ...attachable.map((other) => ({
        label: `$(plug) Answer ${other.name} in this window`,
        description: `session ${other.file.session}`,
        run: () => {
          runs.attach(other.file);
        },
      })),
    );
  }
  entries.push(
    { label: 'bridge', kind: vscode.QuickPickItemKind.Separator },
    { label: '$(output) Show log', run: showLog },
    {
      label: '$(gear) Settings',
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
  return (await vscode.window.showQuickPick(entries, { title: 'Stop which run?' }))?.run;
}

/** The same among runs of other windows. */
export async function pickAttachable(runs: Runs): Promise<ConnectionFile | undefined> {
  const entries = runs
    .attachable()
    .map(({ name, file }) => ({ label: name, description: `session ${file.session}`, file }));
  if (entries.length === 0) {
    void vscode.window.showInformationMessage('No other run in this folder waits for an editor.');
    return undefined;
  }
  return (await vscode.window.showQuickPick(entries, { title: 'Answer which run in this window?' }))?.file;
}

/** The net in the active editor, if it shows one. */
export function activeNet(): vscode.Uri | undefined {
  const uri = vscode.window.activeTextEditor?.document.uri;
  return uri && isNetFile(uri.path) ? uri : undefined;
}

function describe(run: Run): string {
  switch (run.state.kind) {
    case 'starting':
      return 'starting';
    case 'alone':
      return 'without a bridge';
    case 'bridged':
      return run.state.answering ? `session ${run.parts.session}` : 'connecting';
    case 'elsewhere':
      return 'answered by another window';
    case 'ended':
      return 'ended';
  }
}

function placeholder(file: vscode.Uri | undefined, runs: Runs): string {
  if (runs.running.length > 0) {
    return `${runs.running.length} running`;
  }
  return file ? 'Nothing is running' : 'Open a *.evolve.yaml or *.pnml.yaml file to run it';
}
