/** The settings, typed. Their defaults and descriptions are in package.json. */

import * as vscode from 'vscode';

import type { PolicyLayers } from './handlers/commandPolicy';

export interface RunSettings {
  readonly bridgeEnabled: boolean;
  readonly port: number;
  readonly daemonPath: string;
  readonly pythonPath: string;
  readonly runCommand: readonly string[];
}

/** The settings for running a file. They may differ between workspace folders. */
export function runSettings(file: vscode.Uri): RunSettings {
  const settings = vscode.workspace.getConfiguration('evolve', file);
  return {
    bridgeEnabled: settings.get('runBridge.enabled', true),
    port: settings.get('runBridge.port', 0),
    daemonPath: settings.get('daemon.path', ''),
    pythonPath: settings.get('python.path', ''),
    runCommand: settings.get<string[]>('run.command', []),
  };
}

export function defaultModel(): string {
  return vscode.workspace.getConfiguration('evolve').get('chat.defaultModel', '');
}

/** The policy by layers, unmerged: merged by the editor, a workspace's value would override the user's. */
export function commandPolicy(): PolicyLayers {
  const layers = vscode.workspace.getConfiguration('evolve').inspect('commands.policy');
  return {
    user: layers?.globalValue,
    workspace: [layers?.workspaceValue, layers?.workspaceFolderValue],
    trusted: vscode.workspace.isTrusted,
  };
}

/** Opens the settings editor at a setting of this extension, on the side (local or remote) where the daemon runs. */
export async function openSetting(name: string): Promise<void> {
  const remote = vscode.env.remoteName !== undefined;
  const command = remote ? 'workbench.action.openRemoteSettings' : 'workbench.action.openSettings';
  await vscode.commands.executeCommand(command, { query: `@id:evolve.${name}` });
}
