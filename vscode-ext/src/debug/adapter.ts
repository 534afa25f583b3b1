/** Starts the debug adapter that comes with the `enginepy` package. */

import path from 'node:path';

import * as vscode from 'vscode';

import { openSetting } from '../config';
import { Problem } from '../problem';
import { findPython } from '../python';

export const DEBUG_TYPE = 'evolve-pnml';

export async function createAdapter(session: vscode.DebugSession): Promise<vscode.DebugAdapterDescriptor> {
  const { program } = session.configuration as { program?: unknown };
  if (typeof program !== 'string') {
    throw new Problem(
      vscode.l10n.t('The launch configuration has no "program": name the net that shall be debugged.'),
    );
  }
  const { python, adapter, directory } = await requireAdapter(vscode.Uri.file(program));
  return new vscode.DebugAdapterExecutable(python, ['-u', adapter], { cwd: directory });
}

/** Throws a {@link Problem} when this Python has no debug adapter for nets. */
export async function requireAdapter(
  file: vscode.Uri,
): Promise<{ python: string; adapter: string; directory: string }> {
  const directory = vscode.workspace.getWorkspaceFolder(file)?.uri.fsPath ?? path.dirname(file.fsPath);
  const python = await findPython(file);
  const { adapter } = await python.ask(directory, {});
  if (adapter === null) {
    throw new Problem(
      vscode.l10n.t(
        'Debugging needs the package enginepy, and {0} cannot import it. Install it there or choose another Python. Running needs no enginepy.',
        python.path,
      ),
      [{ title: vscode.l10n.t('Choose Python'), run: () => openSetting('python.path') }],
    );
  }
  return { python: python.path, adapter, directory };
}
