/** The item in the status bar: idle, running, or an error. */

import * as vscode from 'vscode';

import type { Runs } from './runs/runs';

export function createStatus(runs: Runs): vscode.Disposable {
  const item = vscode.window.createStatusBarItem('run-bridge', vscode.StatusBarAlignment.Left);
  item.name = 'Run Bridge';
  item.command = 'evolve.showRunMenu';
  const update = (): void => {
    const count = runs.running.length;
    void vscode.commands.executeCommand('setContext', 'evolve.running', count > 0);
    item.backgroundColor = undefined;
    if (runs.failure !== undefined) {
      item.text = '$(error) Evolve';
      item.tooltip = runs.failure;
      item.backgroundColor = new vscode.ThemeColor('statusBarItem.errorBackground');
    } else if (count > 0) {
      item.text = `$(sync~spin) Evolve: ${vscode.l10n.t('{0} running', count)}`;
      item.tooltip = runs.running.map((run) => run.name).join('\n');
    } else {
      item.text = '$(play) Evolve';
      item.tooltip = vscode.l10n.t('Run Bridge: nothing is running');
    }
  };
  update();
  item.show();
  return vscode.Disposable.from(item, runs.onDidChange(update));
}
