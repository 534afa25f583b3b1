/** Starts a prepared run in its own terminal. */

import * as vscode from 'vscode';

import { awaitConnectionFile } from '../bridge/connectionFile';
import { Problem } from '../problem';
import type { PreparedRun } from './prepare';
import type { Run } from './run';

/** How long to wait for the daemon's connection file. Usually some milliseconds; a busy machine needs longer. */
const START_MS = 30_000;

/** Exit codes of the daemon which say that the program was not started. */
const NOT_STARTED: Readonly<Record<number, string>> = {
  125: vscode.l10n.t('the bridge could not start'),
  126: vscode.l10n.t('its program cannot be executed'),
  127: vscode.l10n.t('its program was not found'),
};

export function openTerminal(name: string, { session, bridged, terminal }: PreparedRun): vscode.Terminal {
  const bridge = bridged ? vscode.l10n.t('bridge session {0}', session) : vscode.l10n.t('without a bridge');
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
 * Waits until the daemon of a run has published its connection file, and becomes a host of the run. A run that ends
 * sooner has either failed to start, which is a {@link Problem}, or was just fast.
 */
export async function attachWhenReady(run: Run, onDidChange: vscode.Event<void>): Promise<void> {
  const limit = new AbortController();
  const timer = setTimeout(() => {
    const message = vscode.l10n.t(
      'The bridge of {0} did not start within {1} seconds. Its terminal may say why.',
      run.name,
      START_MS / 1000,
    );
    limit.abort(new Problem(message));
  }, START_MS);
  const ended = onDidChange(() => {
    if (run.state.kind === 'ended') {
      limit.abort(
        new Problem(
          vscode.l10n.t(
            '{0} did not start: {1}. Its terminal says more.',
            run.name,
            reasonOf(run.state.code),
          ),
        ),
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
    ? vscode.l10n.t('its terminal was closed')
    : (NOT_STARTED[code] ?? vscode.l10n.t('it ended with exit code {0}', code));
}
