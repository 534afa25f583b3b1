/** Starts and ends what every suite of end-to-end tests needs: a server and a browser. */

import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';
import { after, before } from 'node:test';

import type { Browser, BrowserContext } from 'playwright-core';

import { installExtensions, Server, type ServerOptions } from './server';
import { launchBrowser, Window } from './window';

const extension = path.resolve(__dirname, '../..');
export const repository = path.resolve(extension, '..');

/** Extensions that tests use. */
type Fixture = 'fake-lm' | 'fake-python' | 'remote-control' | 'rival';

/** A new folder for everything that one server and its tests write. All such folders are removed at the end. */
export function newHome(): string {
  const all = process.env['RUN_BRIDGE_TEST_HOME'];
  if (all === undefined) {
    throw new Error('these tests are run by scripts/test-extension, which cleans up after them');
  }
  return mkdtempSync(path.join(all, 'editor-'));
}

/**
 * A folder with these extensions installed. Packaging and installing takes seconds, so all servers of a test run that
 * need the same extensions share a folder.
 */
export function extensionsFolder(packages: readonly ('product' | Fixture)[], home: string): string {
  const folder = path.join(path.dirname(home), `extensions-${packages.join('-')}`);
  if (!existsSync(folder)) {
    const files = packages.map((name) => (name === 'product' ? productVsix() : fixtureVsix(name, home)));
    installExtensions(files, `${folder}.partial`, home);
    renameSync(`${folder}.partial`, folder);
  }
  return folder;
}

/** The package that a person would install, made by `scripts/package-extension`. */
function productVsix(): string {
  const cache = path.join(repository, '.cache');
  const name = readdirSync(cache).find((file) => /^run-bridge-.*\.vsix$/.test(file));
  if (name === undefined) {
    throw new Error('there is no .cache/run-bridge-*.vsix: run scripts/package-extension --debug first');
  }
  return path.join(cache, name);
}

function fixtureVsix(name: Fixture, into: string): string {
  const file = path.join(into, `${name}.vsix`);
  execFileSync(
    path.join(extension, 'node_modules/.bin/vsce'),
    ['package', '--no-dependencies', '--skip-license', '--allow-missing-repository', '--out', file],
    { cwd: path.join(extension, 'test/fixtures', name), stdio: 'pipe' },
  );
  return file;
}

export interface Stage {
  readonly home: string;
  readonly server: Server;
  /** Opens a folder in a window. All windows are closed after the suite. */
  readonly open: (folder: string) => Promise<Window>;
}

interface Needs extends Pick<ServerOptions, 'settings' | 'trust'> {
  /** Extensions to install beside ours and `remote-control`. */
  readonly extensions: readonly Fixture[];
  /** Removes something from our installed extension, to imitate a broken installation. */
  readonly damage?: (product: string) => void;
}

/** Starts server and browser before the tests of a suite and ends them afterwards. */
export function stage({ extensions, damage, ...options }: Needs): Stage {
  const home = newHome();
  let server: Server | undefined;
  let browser: Browser | undefined;
  // One profile for all windows of a suite, so that the second window finds the editor's code in the cache.
  let profile: BrowserContext | undefined;
  before(async () => {
    let folder = extensionsFolder(['product', 'remote-control', ...extensions], home);
    if (damage) {
      cpSync(folder, path.join(home, 'extensions'), { recursive: true });
      folder = path.join(home, 'extensions');
      const product = readdirSync(folder).find((name) => name.startsWith('run-bridge.'));
      damage(path.join(folder, product ?? ''));
    }
    const flags = ['--enable-proposed-api', 'evolvetest.fake-lm'];
    server = await Server.start({ home, extensions: folder, flags, ...options });
    browser = await launchBrowser(home);
    profile = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  });
  after(async () => {
    try {
      await browser?.close();
    } finally {
      await server?.stop();
    }
    rmSync(home, { recursive: true, force: true });
  });
  const started = <T>(part: T | undefined): T => {
    if (part === undefined) {
      throw new Error('the stage is used before it was set up');
    }
    return part;
  };
  return {
    home,
    get server() {
      return started(server);
    },
    open: (folder) => Window.open(started(profile), started(server).url, folder),
  };
}
