/** The entry point of the extension: its parts and its editor commands. */

import path from 'node:path';

import * as vscode from 'vscode';

import type { Window } from './ctx';
import { createAdapter, DEBUG_TYPE, requireAdapter } from './debug/adapter';
import { BridgeTracker } from './debug/tracker';
import { ChatHistory } from './handlers/chatHistory';
import { isNetFile } from './launch/net';
import { Problem, report } from './problem';
import { activeNet, pickAttachable, pickRun, showRunMenu } from './runs/menu';
import { Runs } from './runs/runs';
import { createStatus } from './status';

let runs: Runs | undefined;

export function activate(extension: vscode.ExtensionContext): void {
  const log = vscode.window.createOutputChannel('Run Bridge', { log: true });
  extension.subscriptions.push(log);
  const rival = findRival(extension.extension.id);
  if (rival) {
    standAside(rival, extension, log);
    return;
  }
  offerClient(extension);
  const window: Window = { extension, log, history: new ChatHistory() };
  runs = new Runs(window);
  extension.subscriptions.push(
    runs,
    createStatus(runs),
    ...Object.entries(createCommands(runs, log)).map(([name, command]) =>
      vscode.commands.registerCommand(name, guarded(command, log)),
    ),
    vscode.debug.registerDebugAdapterDescriptorFactory(DEBUG_TYPE, {
      createDebugAdapterDescriptor: createAdapter,
    }),
    vscode.debug.registerDebugAdapterTrackerFactory(DEBUG_TYPE, {
      createDebugAdapterTracker: (session) => new BridgeTracker(window, session),
    }),
  );
}

/** Adds the bundled `bridge-client` to the PATH of terminals, at its end. */
function offerClient(extension: vscode.ExtensionContext): void {
  const programs = vscode.Uri.joinPath(extension.extensionUri, 'bundled', 'bin').fsPath;
  const collection = extension.environmentVariableCollection;
  collection.description = vscode.l10n.t('Adds the command `bridge-client`.');
  collection.append('PATH', path.delimiter + programs);
}

/** Ends the connections. Runs continue in their terminals, which the editor keeps or closes with the window. */
export async function deactivate(): Promise<void> {
  await runs?.leaveAll();
}

type Command = (...args: unknown[]) => unknown;

function createCommands(runs: Runs, log: vscode.LogOutputChannel): Readonly<Record<string, Command>> {
  return {
    'evolve.runNet': async (uri) => {
      const file = await netToRun(uri);
      return file && runs.start(file);
    },
    'evolve.debugNet': async (uri) => {
      const file = await netToRun(uri);
      return file && debugNet(file);
    },
    'evolve.stopRun': async () => {
      const run = await pickRun(runs.running);
      return run && runs.stop(run);
    },
    'evolve.attachRun': async () => {
      const file = await pickAttachable(runs);
      if (file) {
        runs.attach(file);
      }
    },
    'evolve.showRunMenu': () =>
      showRunMenu(runs, () => {
        log.show();
      }),
    'evolve.showLog': () => {
      log.show();
    },
  };
}

/** Wraps a command: an error is shown to the person instead of rejecting the promise. */
function guarded(command: Command, log: vscode.LogOutputChannel): Command {
  return async (...args) => {
    try {
      return await command(...args);
    } catch (error) {
      report(error, log);
      return undefined;
    }
  };
}

/** The net that a menu passed, or the one in the active editor. It is saved first, so that it runs as shown. */
async function netToRun(uri: unknown): Promise<vscode.Uri | undefined> {
  const file = uri instanceof vscode.Uri ? uri : activeNet();
  if (!vscode.workspace.isTrusted) {
    throw new Problem(vscode.l10n.t('Nets run only in a trusted workspace, because they execute its code.'), [
      {
        title: vscode.l10n.t('Manage Trust'),
        run: () => vscode.commands.executeCommand('workbench.trust.manage'),
      },
    ]);
  }
  if (!file || !isNetFile(file.path) || file.scheme !== 'file') {
    void vscode.window.showInformationMessage(
      vscode.l10n.t('Open a *.evolve.yaml or *.pnml.yaml file to run it.'),
    );
    return undefined;
  }
  const document = vscode.workspace.textDocuments.find((open) => open.uri.toString() === file.toString());
  if (document?.isDirty === true && !(await document.save())) {
    return undefined;
  }
  return file;
}

async function debugNet(file: vscode.Uri): Promise<void> {
  await requireAdapter(file);
  await vscode.debug.startDebugging(vscode.workspace.getWorkspaceFolder(file), {
    type: DEBUG_TYPE,
    request: 'launch',
    name: path.basename(file.path),
    program: file.fsPath,
  });
}

/** Finds another extension with the same command. The one that registers it second would fail to activate. */
function findRival(own: string): vscode.Extension<unknown> | undefined {
  return vscode.extensions.all.find(
    (other) => other.id !== own && commandsOf(other).includes('evolve.runNet'),
  );
}

/** Leaves the command to the other extension. Commands that only this extension has explain why they do nothing. */
function standAside(
  rival: vscode.Extension<unknown>,
  { extension, subscriptions }: vscode.ExtensionContext,
  log: vscode.LogOutputChannel,
): void {
  const explain = (): void => {
    const message = vscode.l10n.t(
      'Run Bridge is off, because the extension {0} has the command evolve.runNet too. Disable one of them.',
      rival.id,
    );
    report(new Problem(message), log);
  };
  const taken = commandsOf(rival);
  const ours = commandsOf(extension).filter((name) => !taken.includes(name));
  subscriptions.push(...ours.map((name) => vscode.commands.registerCommand(name, explain)));
  explain();
}

function commandsOf(extension: vscode.Extension<unknown>): string[] {
  const { contributes } = extension.packageJSON as { contributes?: { commands?: { command: string }[] } };
  return (contributes?.commands ?? []).map(({ command }) => command);
}
