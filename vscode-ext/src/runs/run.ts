/**
 * One run: its terminal, its bridge and its end.
 *
 * The daemon is a child of the terminal and the net a child of the daemon, so they end together. A run does not end with
 * the extension host: after a reload of the window the terminal is still there, and a new `Run` object replaces this
 * one.
 */

import * as vscode from 'vscode';

import { locateDirectory, readConnectionFile, readEndpoint } from '../bridge/connectionFile';
import { HostLink, type LinkEnd, type LinkState } from '../bridge/hostLink';
import { METHODS, type Registration } from '../bridge/protocol';
import { connectWebSocket } from '../bridge/webSocketTransport';
import type { Window } from '../ctx';
import { handle } from '../handlers';
import type { RunFolder } from '../launch/runFolder';

export type RunState =
  | { readonly kind: 'starting' }
  /** Without a bridge. */
  | { readonly kind: 'alone' }
  /** With a bridge. `answering` says whether this window is its host now. */
  | { readonly kind: 'bridged'; readonly answering: boolean }
  /** Another window has taken over as host. */
  | { readonly kind: 'elsewhere' }
  | { readonly kind: 'ended'; readonly code: number | undefined };

export interface RunParts {
  readonly session: string;
  /** The name of the run for people. */
  readonly name: string;
  /** Absent if the run was started by hand. */
  readonly folder: RunFolder | undefined;
  /** Absent if the run belongs to another window. */
  readonly terminal: vscode.Terminal | undefined;
}

export interface RunListener {
  readonly onChange: (run: Run) => void;
  /** Called when the bridge has ended in a way that the person should know about. */
  readonly onFailure: (message: string) => void;
}

export class Run implements vscode.Disposable {
  readonly directory = locateDirectory(process.env);
  private current: RunState = { kind: 'starting' };
  private link: HostLink | undefined;
  /** Whether the daemon has gone without a close frame. */
  private lost = false;
  private readonly grants = new Set<string>();
  private readonly disposables: vscode.Disposable[] = [];

  constructor(
    private readonly window: Window,
    readonly parts: RunParts,
    private readonly listener: RunListener,
  ) {
    const stop = parts.folder?.watch(
      (line) => {
        logDaemonLine(window.log, parts.session, line);
      },
      (code) => {
        this.end(code);
      },
    );
    this.disposables.push({ dispose: () => stop?.() });
  }

  get state(): RunState {
    return this.current;
  }

  get name(): string {
    return this.parts.name;
  }

  /** Pid of the daemon, while it lives. */
  get daemonPid(): number | undefined {
    return readConnectionFile(this.directory, this.parts.session)?.pid;
  }

  /** Records that the run has no bridge. */
  goAlone(): void {
    this.enter({ kind: 'alone' });
  }

  /** Makes this window a host of the run. The daemon must have published its connection file. */
  attach(runtimeId: string): void {
    const { log, history } = this.window;
    this.link = new HostLink({
      runtimeId,
      registration: () => describeWindow(),
      locate: () => readEndpoint(this.directory, this.parts.session),
      connect: connectWebSocket,
      dispatch: (method, params, call) =>
        handle({ log, history, source: this.name, grants: this.grants, ...call }, method, params),
      log,
      onState: (state) => {
        this.linkChanged(state);
      },
    });
  }

  async focusChanged(focused: boolean): Promise<void> {
    await this.link?.update({ focused });
  }

  /** Records that the program has ended. The link itself detects that, and whether the daemon was killed. */
  end(code: number | undefined): void {
    this.enter({ kind: 'ended', code });
    this.reportLoss();
  }

  dispose(): void {
    void this.leave();
  }

  /** Ends the connection. The run itself is not affected. */
  async leave(): Promise<void> {
    vscode.Disposable.from(...this.disposables.splice(0)).dispose();
    await this.link?.detach();
  }

  private linkChanged(state: LinkState): void {
    this.window.log.info(`Session ${this.parts.session}: ${describeLink(state)}`);
    if (state.kind === 'ended') {
      this.linkEnded(state.end);
    } else {
      this.enter({ kind: 'bridged', answering: state.kind === 'attached' });
    }
  }

  private linkEnded(end: LinkEnd): void {
    switch (end.kind) {
      case 'detached':
        break;
      case 'replaced':
        this.enter({ kind: 'elsewhere' });
        break;
      case 'refused':
        this.listener.onFailure(
          vscode.l10n.t('The bridge of {0} does not accept this window: {1}.', this.name, end.message),
        );
        this.enter({ kind: 'elsewhere' });
        break;
      case 'daemonGone':
        this.lost = true;
        this.bridgeEnded();
        break;
      case 'daemonEnded':
        this.bridgeEnded();
        break;
    }
  }

  /** Handles the end of the daemon. The exit code follows in the run's folder, which a run started by hand lacks. */
  private bridgeEnded(): void {
    if (this.parts.folder) {
      this.enter({ kind: 'bridged', answering: false });
      this.reportLoss();
    } else {
      this.end(undefined);
    }
  }

  /** Reports an unexpected end of the bridge. The end of the run and the loss of its bridge come in either order. */
  private reportLoss(): void {
    if (this.lost && this.current.kind === 'ended' && this.current.code !== 0) {
      this.lost = false;
      this.listener.onFailure(
        vscode.l10n.t(
          'The bridge of {0} has ended unexpectedly, and the run with it. The log may say why.',
          this.name,
        ),
      );
    }
  }

  private enter(state: RunState): void {
    if (this.current.kind !== 'ended') {
      this.current = state;
      this.listener.onChange(this);
    }
  }
}

function describeWindow(): Registration {
  const folders = vscode.workspace.workspaceFolders ?? [];
  return {
    title: vscode.workspace.name ?? 'VS Code',
    workspaceFolders: folders.map((folder) => folder.uri.fsPath),
    methods: METHODS,
    focused: vscode.window.state.focused,
  };
}

function describeLink(state: LinkState): string {
  switch (state.kind) {
    case 'connecting':
      return 'connecting to the bridge';
    case 'attached':
      return 'this window answers';
    case 'ended':
      return `the connection has ended (${state.end.kind})`;
  }
}

/** Writes a line of the daemon's log with the level that it names, so that the output channel can filter it. */
function logDaemonLine(log: vscode.LogOutputChannel, session: string, line: string): void {
  const text = `[daemon ${session}] ${line}`;
  const level = /\b(ERROR|WARN|INFO|DEBUG|TRACE)\b/.exec(line)?.[1] ?? 'INFO';
  log[level.toLowerCase() as 'error' | 'warn' | 'info' | 'debug' | 'trace'](text);
}
