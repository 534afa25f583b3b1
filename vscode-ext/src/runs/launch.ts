/** Starts a prepared run in a terminal of its own. */

import * as vscode from 'vscode';

import { awaitConnectionFile } from '../bridge/connectionFile';
import { Problem } from '../problem';
import type { PreparedRun } from './prepare';
import type { Run } from './run';

/** A daemon publishes its file some milliseconds after its start; a busy machine needs longer. */
const START_MS = 30_000;

/** Exit codes of the daemon that say that the run never began. */
const NOT_STARTED: Readonly<Record<number, string>> = {
  125: 'the bridge could not start',
  126: 'its program cannot be executed',
  127: 'its program was not found',
};

export function openTerminal(name: string, { session, bridged, terminal }: PreparedRun): vscode.Terminal {
  const bridge = bridged ? `bridge session ${session}` : 'without a bridge';
  const opened = vscode.window.createTerminal({
    ...terminal,
    name: `Run: ${name}`,
    iconPath: new vscode.ThemeIcon('play'),
    message: `\u001b[1m${name}\u001b[0m \u001b[2m· ${bridge}\u001b[0m`,
  });
  opened.show(true);
  return opened;
}

/**
 * Waits until the bridge of a run is there, and becomes its host. A run that ends sooner has
 * either failed to start, which is a {@link Problem}, or has simply been fast.
 */
export async function attachWhenReady(run: Run, onDidChange: vscode.Event<void>): Promise<void> {
  const limit = new AbortController();
  const timer = setTimeout(() => {
    const message = `The bridge of ${run.name} did not start within ${START_MS / 1000} seconds. Its terminal may say why.`;
    limit.abort(new Problem(message));
  }, START_MS);
  const ended = onDidChange(() => {
    if (run.state.kind === 'ended') {
      limit.abort(
        new Problem(`${run.name} did not start: ${reasonOf(run.state.code)}. Its terminal says more.`),
      );
    }
  });
  try {
    await awaitConnectionFile(run.directory, run.parts.session, limit.signal);
    run.attach(`vscode-${run.parts.session}`);
  } catch (error) {
    if (run.state.kind !== 'ended' || run.state.code === undefined || run.state.code in NOT_STARTED) {
      throw error;
    }
  } finally {
    clearTimeout(timer);
    ended.dispose();
  }
}

function reasonOf(code: number | undefined): string {
  return code === undefined
    ? 'its terminal was closed'
    : (NOT_STARTED[code] ?? `it ended with exit code ${code}`);
}
