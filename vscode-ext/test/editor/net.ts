/** Nets that wait for the test, so that their run lasts as long as the test needs it. */

import { mkdtempSync, writeFileSync } from 'node:fs';
import path from 'node:path';

import * as vscode from 'vscode';

import { Fifo, net } from '../e2e/nets';

/** A net that runs this code and then waits until its FIFO is opened. */
export function waitingNet(code: string): { file: vscode.Uri; fifo: Fifo } {
  const root = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? '';
  const folder = mkdtempSync(path.join(root, 'net-'));
  const fifo = new Fifo(path.join(folder, 'fifo'));
  const file = path.join(folder, 'waiting.evolve.yaml');
  writeFileSync(file, net(`${code.trim()}\n${fifo.code}`));
  return { file: vscode.Uri.file(file), fifo };
}
