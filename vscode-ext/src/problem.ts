/** An error about which the person can do something. */

import * as vscode from 'vscode';

import { withoutCommandLinks } from './handlers/notificationText';

/** A button below the message. */
export interface Remedy {
  readonly title: string;
  readonly run: () => unknown;
}

export class Problem extends Error {
  override readonly name = 'Problem';

  constructor(
    message: string,
    readonly remedies: readonly Remedy[] = [],
  ) {
    super(message);
  }
}

export const showLog = (log: vscode.LogOutputChannel): Remedy => ({
  title: vscode.l10n.t('Show Log'),
  run: () => {
    log.show();
  },
});

/** Shows a thrown value to the person, without waiting for an answer. */
export function report(thrown: unknown, log: vscode.LogOutputChannel): void {
  const problem = thrown instanceof Problem ? thrown : new Problem(messageOf(thrown), [showLog(log)]);
  log.error(problem.message);
  const titles = problem.remedies.map(({ title }) => title);
  // A problem may name a file of the workspace, or quote a program.
  const text = withoutCommandLinks(problem.message);
  void vscode.window.showErrorMessage(text, ...titles).then(async (choice) => {
    try {
      await problem.remedies.find(({ title }) => title === choice)?.run();
    } catch (error) {
      report(error, log);
    }
  });
}

export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
