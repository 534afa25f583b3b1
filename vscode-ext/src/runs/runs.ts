/**
 * The runs of this window: starts them, finds them again after a reload, stops them.
 *
 * A run belongs to the window that shows its terminal. That window answers the run's calls. Its runtime id is made of the
 * session, so that it replaces its own registration after a reload. Other windows, even on the same folder, do not
 * attach unless the person asks for it (`attachRun`); then both are registered, and the daemon sends requests to the one
 * that has the focus.
 */

import { randomBytes } from 'node:crypto';
import path from 'node:path';

import * as vscode from 'vscode';

import type { ConnectionFile } from '../bridge/connectionFile';
import type { Window } from '../ctx';
import { RunFolder } from '../launch/runFolder';
import { Problem, report, showLog } from '../problem';
import { attachWhenReady, openTerminal } from './launch';
import { prepare, type Overrides } from './prepare';
import { nameOf, publishedHere, publishedRuns, TerminalRuns } from './published';
import { Run, type RunParts } from './run';

/** How long to wait for the end of a run: a little longer than the daemon waits between SIGTERM and SIGKILL. */
const STOP_MS = 12_000;

export class Runs implements vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly bySession = new Map<string, Run>();
  private readonly disposables: vscode.Disposable[];
  private lastFailure: string | undefined;

  readonly onDidChange = this.changed.event;

  constructor(private readonly window: Window) {
    this.disposables = [
      this.changed,
      vscode.window.onDidCloseTerminal((terminal) => {
        this.terminalClosed(terminal);
      }),
      vscode.window.onDidChangeWindowState(({ focused }) => {
        this.all.forEach((run) => void run.focusChanged(focused));
      }),
      new TerminalRuns((file, terminal) => {
        this.adopt(file, terminal);
      }),
    ];
    const isRunning = (session: string): boolean => publishedRuns().some((run) => run.session === session);
    RunFolder.sweep(this.storage, isRunning, Date.now());
  }

  /** All runs of this window, also those that have ended and still show their terminal. */
  get all(): readonly Run[] {
    return [...this.bySession.values()];
  }

  get running(): readonly Run[] {
    return this.all.filter((run) => run.state.kind !== 'ended');
  }

  /** Why the last run failed to start or lost its bridge, until the next one starts. */
  get failure(): string | undefined {
    return this.lastFailure;
  }

  /** Starts a net in a terminal of its own. Resolves with the session once the bridge is up. */
  async start(file: vscode.Uri, overrides: Overrides = {}): Promise<string> {
    this.lastFailure = undefined;
    const name = path.basename(file.fsPath);
    const progress = { location: vscode.ProgressLocation.Window, title: vscode.l10n.t('Starting {0}', name) };
    return vscode.window.withProgress(progress, async () => {
      try {
        const prepared = await prepare(this.window, file, overrides, (again) => this.start(file, again));
        const { session, folder, bridged } = prepared;
        this.closeEndedTerminals(file);
        const run = this.add({ session, name, folder, terminal: openTerminal(name, prepared) });
        if (bridged) {
          await attachWhenReady(run, this.onDidChange);
        } else {
          run.goAlone();
        }
        return session;
      } catch (error) {
        this.lastFailure = (error as Error).message;
        throw error;
      } finally {
        this.changed.fire();
      }
    });
  }

  /** Makes this window a host of a run that another window, or none, answers. */
  attach(file: ConnectionFile): void {
    const folder = RunFolder.find(this.storage, file.session);
    const known = this.bySession.get(file.session);
    const run =
      known ?? this.add({ session: file.session, name: nameOf(file, folder), folder, terminal: undefined });
    run.attach(`vscode-${randomBytes(8).toString('hex')}`);
  }

  /** Runs of this workspace that wait for a window and that this one does not answer. */
  attachable(): { file: ConnectionFile; name: string }[] {
    return publishedHere()
      .filter(({ session }) => !this.answers(session))
      .map((file) => ({ file, name: nameOf(file, RunFolder.find(this.storage, file.session)) }));
  }

  /** Tells a run to end, and waits until it has. */
  async stop(run: Run): Promise<void> {
    const { terminal } = run.parts;
    const pid = run.daemonPid;
    if (pid !== undefined) {
      process.kill(pid, 'SIGTERM');
    } else if (run.state.kind === 'alone') {
      // Ctrl-C, because without a daemon only the terminal knows the process.
      terminal?.sendText('\u0003', false);
    } else {
      terminal?.dispose();
    }
    if (!(await this.hasEnded(run))) {
      throw new Problem(
        vscode.l10n.t('{0} has not ended {1} seconds after it was told to.', run.name, STOP_MS / 1000),
        [{ title: vscode.l10n.t('Close Its Terminal'), run: () => terminal?.dispose() }],
      );
    }
  }

  /** Closes all connections. The runs continue in their terminals. */
  async leaveAll(): Promise<void> {
    await Promise.all(this.all.map((run) => run.leave()));
  }

  dispose(): void {
    vscode.Disposable.from(...this.disposables, ...this.all).dispose();
  }

  private adopt(file: ConnectionFile, terminal: vscode.Terminal): void {
    const { session } = file;
    if (!this.bySession.has(session)) {
      const folder = RunFolder.find(this.storage, session);
      this.add({ session, name: nameOf(file, folder), folder, terminal }).attach(`vscode-${session}`);
    }
  }

  private terminalClosed(terminal: vscode.Terminal): void {
    // The window is closed or reloaded: its terminals, and the programs in them, stay.
    if (terminal.exitStatus?.reason === vscode.TerminalExitReason.Shutdown) {
      return;
    }
    for (const run of this.all.filter(({ parts }) => parts.terminal === terminal)) {
      run.end(undefined);
      this.remove(run);
    }
  }

  /** Removes the last run of a net that is started again. */
  private closeEndedTerminals(file: vscode.Uri): void {
    for (const run of this.all) {
      if (run.state.kind === 'ended' && run.parts.folder?.net === file.fsPath) {
        run.parts.terminal?.dispose();
        this.remove(run);
      }
    }
  }

  private add(parts: RunParts): Run {
    const run = new Run(this.window, parts, {
      onChange: (changed) => {
        this.runChanged(changed);
      },
      onFailure: (message) => {
        this.lastFailure = message;
        report(new Problem(message, [showLog(this.window.log)]), this.window.log);
        this.changed.fire();
      },
    });
    this.bySession.set(parts.session, run);
    this.changed.fire();
    return run;
  }

  private runChanged(run: Run): void {
    // Without a folder, the run was typed into a shell of the terminal, which goes on.
    if (run.state.kind === 'ended' && !run.parts.folder) {
      this.remove(run);
    } else {
      this.changed.fire();
    }
  }

  private remove(run: Run): void {
    run.dispose();
    this.bySession.delete(run.parts.session);
    this.changed.fire();
  }

  private answers(session: string): boolean {
    const state = this.bySession.get(session)?.state;
    return state !== undefined && state.kind !== 'elsewhere';
  }

  private hasEnded(run: Run): Promise<boolean> {
    return new Promise((resolve) => {
      const done = (ended: boolean): void => {
        clearTimeout(timer);
        listener.dispose();
        resolve(ended);
      };
      const look = (): void => {
        if (run.state.kind === 'ended') {
          done(true);
        }
      };
      const timer = setTimeout(done, STOP_MS, false);
      const listener = this.onDidChange(look);
      look();
    });
  }

  private get storage(): string {
    return this.window.extension.globalStorageUri.fsPath;
  }
}
