/** Finds runs that wait for a window, in terminals of this window or elsewhere. */

import { mkdirSync } from 'node:fs';
import path from 'node:path';

import * as vscode from 'vscode';

import {
  listConnectionFiles,
  locateDirectory,
  onChange,
  type ConnectionFile,
} from '../bridge/connectionFile';
import { ancestry } from '../bridge/process';
import { RunFolder } from '../launch/runFolder';

/** All runs of this user that wait for a window, newest first. */
export function publishedRuns(): ConnectionFile[] {
  return listConnectionFiles(locateDirectory(process.env)).filter((file) => file.wantsEditor);
}

/** Runs that wait for a window and were started in this workspace. */
export function publishedHere(): ConnectionFile[] {
  const folders = (vscode.workspace.workspaceFolders ?? []).map(({ uri }) => uri.fsPath);
  const isInside = (directory: string): boolean =>
    folders.some((folder) => directory === folder || directory.startsWith(folder + path.sep));
  return publishedRuns().filter(({ directory }) => isInside(directory));
}

/** The name of a run: its net if a window has started it, its program if it was started by hand. */
export function nameOf({ session, program }: ConnectionFile, folder: RunFolder | undefined): string {
  return folder ? path.basename(folder.net) : `${program ?? 'a program'} (session ${session})`;
}

/**
 * Reports each run whose process is a descendant of a terminal of this window: after a reload, when the terminals come
 * back, and when a person types `bridge-daemon run --host editor` into a terminal. A run may be reported more than once.
 */
export class TerminalRuns implements vscode.Disposable {
  private readonly terminals = new Map<number, vscode.Terminal>();
  private readonly disposables: vscode.Disposable[];

  constructor(private readonly onFound: (file: ConnectionFile, terminal: vscode.Terminal) => void) {
    this.disposables = [
      {
        dispose: watchConnectionFiles(() => {
          this.look();
        }),
      },
      vscode.window.onDidOpenTerminal((terminal) => void this.add(terminal)),
      vscode.window.onDidCloseTerminal((terminal) => void this.remove(terminal)),
    ];
    vscode.window.terminals.forEach((terminal) => void this.add(terminal));
  }

  dispose(): void {
    vscode.Disposable.from(...this.disposables).dispose();
  }

  private async add(terminal: vscode.Terminal): Promise<void> {
    const pid = await terminal.processId;
    if (pid !== undefined) {
      this.terminals.set(pid, terminal);
      this.look();
    }
  }

  private async remove(terminal: vscode.Terminal): Promise<void> {
    const pid = await terminal.processId;
    if (pid !== undefined) {
      this.terminals.delete(pid);
    }
  }

  private look(): void {
    for (const file of this.terminals.size === 0 ? [] : publishedRuns()) {
      const owner = ancestry(file.pid).find((pid) => this.terminals.has(pid));
      const terminal = owner === undefined ? undefined : this.terminals.get(owner);
      if (terminal) {
        this.onFound(file, terminal);
      }
    }
  }
}

/** Watches the directory of connection files. If there is none, nothing is watched; daemons report that themselves. */
function watchConnectionFiles(look: () => void): () => void {
  const directory = locateDirectory(process.env);
  try {
    // The daemon also creates the directory, but it must exist now to be watched.
    mkdirSync(directory, { recursive: true, mode: 0o700 });
  } catch {
    return () => undefined;
  }
  return onChange(directory, look);
}
