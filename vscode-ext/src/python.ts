/** Finds the Python for a file, from the settings and the Python extension. */

import * as vscode from 'vscode';

import { openSetting, runSettings } from './config';
import { askPython, choosePython, type PythonFacts } from './launch/python';
import { Problem } from './problem';

/** The part of the Python extension's interface that is used here. */
interface PythonExtension {
  readonly environments: {
    getActiveEnvironmentPath(resource?: vscode.Uri): { readonly path: string };
    resolveEnvironment(environment: {
      readonly path: string;
    }): Promise<{ readonly executable: { readonly uri?: vscode.Uri } } | undefined>;
  };
}

export interface FoundPython {
  readonly path: string;
  /** Asks the Python for its version and modules. Throws a {@link Problem} when it cannot be started. */
  ask(directory: string, environment: Record<string, string>): Promise<PythonFacts>;
}

export async function findPython(file: vscode.Uri): Promise<FoundPython> {
  const path = choosePython({
    setting: runSettings(file).pythonPath,
    chosen: await chosenInPythonExtension(file),
    variable: process.env['PYTHON_PATH'],
  });
  return {
    path,
    ask: async (directory, environment) => {
      try {
        return await askPython(path, directory, { ...process.env, ...environment });
      } catch (error) {
        throw new Problem(
          vscode.l10n.t('Python could not be started as {0}: {1}.', path, (error as Error).message),
          [{ title: vscode.l10n.t('Choose Python'), run: () => openSetting('python.path') }],
        );
      }
    },
  };
}

/** The choice of the Python extension. An error of that extension counts as no choice, and does not stop a run. */
async function chosenInPythonExtension(file: vscode.Uri): Promise<string | undefined> {
  try {
    const python = await vscode.extensions.getExtension<PythonExtension>('ms-python.python')?.activate();
    const active = python?.environments.getActiveEnvironmentPath(file);
    const resolved = active && (await python?.environments.resolveEnvironment(active));
    return resolved?.executable.uri?.fsPath;
  } catch {
    return undefined;
  }
}
