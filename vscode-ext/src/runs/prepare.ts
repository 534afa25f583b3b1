/** Prepares a run: turns a net and the settings into the program of a terminal. */

import { randomBytes } from 'node:crypto';
import net from 'node:net';
import path from 'node:path';

import * as vscode from 'vscode';

import { openSetting, runSettings, type RunSettings } from '../config';
import type { Window } from '../ctx';
import {
  defaultTemplate,
  expand,
  stayOpen,
  variables,
  withBridge,
  type TerminalProgram,
} from '../launch/commandLine';
import { findDaemon } from '../launch/daemonBinary';
import { BRIDGE_VARIABLES, pythonEnvironment } from '../launch/environment';
import { isTooOld, OLDEST_PYTHON } from '../launch/python';
import { RunFolder } from '../launch/runFolder';
import { Problem } from '../problem';
import { findPython } from '../python';

/** Everything that is needed to start a run. */
export interface PreparedRun {
  readonly session: string;
  readonly folder: RunFolder;
  readonly bridged: boolean;
  readonly terminal: TerminalProgram & Pick<vscode.TerminalOptions, 'cwd' | 'env'>;
}

/** Values that the person has chosen for one run instead of the settings. */
export type Overrides = Partial<Pick<RunSettings, 'port' | 'bridgeEnabled'>>;

/** Prepares a run. Throws a {@link Problem} if something is missing. */
export async function prepare(
  window: Window,
  file: vscode.Uri,
  overrides: Overrides,
  retry: (overrides: Overrides) => unknown,
): Promise<PreparedRun> {
  const settings = { ...runSettings(file), ...overrides };
  const directory = vscode.workspace.getWorkspaceFolder(file)?.uri.fsPath ?? path.dirname(file.fsPath);
  const bundled = vscode.Uri.joinPath(window.extension.extensionUri, 'bundled').fsPath;
  const daemon = settings.bridgeEnabled
    ? requireDaemon(settings, path.join(bundled, 'bin'), () => retry({ ...overrides, bridgeEnabled: false }))
    : undefined;
  if (daemon !== undefined && settings.port !== 0 && !(await isFree(settings.port))) {
    throw new Problem(
      vscode.l10n.t(
        'Port {0}, which evolve.runBridge.port names, is in use, perhaps by another run.',
        settings.port,
      ),
      [
        { title: vscode.l10n.t('Use a Free Port'), run: () => retry({ ...overrides, port: 0 }) },
        { title: vscode.l10n.t('Open Setting'), run: () => openSetting('runBridge.port') },
      ],
    );
  }
  const python = pythonEnvironment(path.join(bundled, 'python'), inheritedPythonPath());
  const command = await runCommand(file, directory, settings, python);

  const session = randomBytes(8).toString('hex');
  const folder = RunFolder.create(window.extension.globalStorageUri.fsPath, session, file.fsPath);
  const program =
    daemon === undefined
      ? command
      : withBridge(command, {
          daemon,
          session,
          port: settings.port,
          logFile: folder.logFile,
          logLevel: daemonLevel(window.log.logLevel),
        });
  const unset = daemon === undefined ? Object.fromEntries(BRIDGE_VARIABLES.map((name) => [name, null])) : {};
  return {
    session,
    folder,
    bridged: daemon !== undefined,
    terminal: { ...stayOpen(program, folder.exitFile), cwd: directory, env: { ...python, ...unset } },
  };
}

function requireDaemon(settings: RunSettings, bundled: string, runWithout: () => unknown): string {
  const found = findDaemon({ setting: settings.daemonPath, bundled, path: process.env['PATH'] });
  switch (found.kind) {
    case 'found':
      return found.path;
    case 'settingWrong':
      throw new Problem(
        vscode.l10n.t(
          'The setting evolve.daemon.path names {0}, which is no program that can be started.',
          found.path,
        ),
        [{ title: vscode.l10n.t('Open Setting'), run: () => openSetting('daemon.path') }],
      );
    case 'missing':
      throw new Problem(
        vscode.l10n.t(
          'The program bridge-daemon was not found. Install the version of this extension for your platform, which contains it, or build it with "cargo build --release" and set evolve.daemon.path, or put it on PATH.',
        ),
        [
          { title: vscode.l10n.t('Open Setting'), run: () => openSetting('daemon.path') },
          { title: vscode.l10n.t('Run Without Bridge'), run: runWithout },
        ],
      );
  }
}

async function runCommand(
  file: vscode.Uri,
  directory: string,
  settings: RunSettings,
  environment: Record<string, string>,
): Promise<string[]> {
  if (settings.runCommand.length > 0) {
    const { path: python } = await findPython(file);
    return expandOrExplain(settings.runCommand, python, file, directory);
  }
  const python = await findPython(file);
  const facts = await python.ask(directory, environment);
  if (!facts.engine && isTooOld(facts.version)) {
    throw new Problem(
      vscode.l10n.t(
        '{0} is Python {1}, and nets need {2} or newer.',
        python.path,
        facts.version.join('.'),
        OLDEST_PYTHON.join('.'),
      ),
      [{ title: vscode.l10n.t('Choose Python'), run: () => openSetting('python.path') }],
    );
  }
  return expandOrExplain(defaultTemplate(facts.engine), python.path, file, directory);
}

function expandOrExplain(
  template: readonly string[],
  python: string,
  file: vscode.Uri,
  directory: string,
): string[] {
  try {
    return expand(template, variables(python, file.fsPath, directory));
  } catch (error) {
    throw new Problem((error as Error).message, [
      { title: vscode.l10n.t('Open Setting'), run: () => openSetting('run.command') },
    ]);
  }
}

/** PYTHONPATH as a terminal has it without this extension: from the user's settings, else from our own environment. */
function inheritedPythonPath(): string | undefined {
  const platform = process.platform === 'darwin' ? 'osx' : 'linux';
  const terminal = vscode.workspace
    .getConfiguration('terminal.integrated.env')
    .get<Record<string, string | null>>(platform, {});
  return terminal['PYTHONPATH'] ?? process.env['PYTHONPATH'];
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = net.createServer();
    probe.once('error', () => {
      resolve(false);
    });
    probe.listen(port, '127.0.0.1', () => {
      probe.close(() => {
        resolve(true);
      });
    });
  });
}

/** The daemon's log level. Its log is shown in the output channel, so it uses the level that was chosen there. */
function daemonLevel(level: vscode.LogLevel): string {
  const names: Partial<Record<vscode.LogLevel, string>> = {
    [vscode.LogLevel.Trace]: 'trace',
    [vscode.LogLevel.Debug]: 'debug',
    [vscode.LogLevel.Info]: 'info',
    [vscode.LogLevel.Warning]: 'warn',
  };
  return names[level] ?? 'error';
}
