/** What every suite of end-to-end tests needs: one server, one browser, and their end. */

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before } from 'node:test';

import type { Browser, BrowserContext } from 'playwright-core';

import { Server, type ServerOptions } from './server';
import { launchBrowser, Window } from './window';

const extension = path.resolve(__dirname, '../..');
export const repository = path.resolve(extension, '..');
const cache = path.join(repository, '.cache');

/** The package that a person would install, as `scripts/package-extension` has made it. */
export function productVsix(): string {
  const name = readdirSync(cache).find((file) => /^run-bridge-.*\.vsix$/.test(file));
  if (name === undefined) {
    throw new Error('there is no .cache/run-bridge-*.vsix: run scripts/package-extension --debug first');
  }
  return path.join(cache, name);
}

/** Extensions that play a part in tests. */
type Fixture = 'fake-lm' | 'fake-python' | 'rival';

/** Packages an extension of the fixtures. */
export function fixtureVsix(name: Fixture, into: string): string {
  const file = path.join(into, `${name}.vsix`);
  if (!existsSync(file)) {
    mkdirSync(into, { recursive: true });
    execFileSync(
      path.join(extension, 'node_modules/.bin/vsce'),
      ['package', '--no-dependencies', '--skip-license', '--allow-missing-repository', '--out', file],
      { cwd: path.join(extension, 'test/fixtures', name), stdio: 'pipe' },
    );
  }
  return file;
}

export interface Stage {
  readonly home: string;
  readonly server: Server;
  readonly browser: Browser;
  /** Opens a folder in a window; all of them are closed after the suite. */
  readonly open: (folder: string, context?: BrowserContext) => Promise<Window>;
}

type Needs = Pick<ServerOptions, 'settings' | 'trust'> & { readonly extensions: readonly Fixture[] };

/** Starts server and browser before the tests of a suite and ends them afterwards. */
export function stage({ extensions, ...options }: Needs): Stage {
  const home = mkdtempSync(path.join(process.env['RUN_BRIDGE_TEST_HOME'] ?? os.tmpdir(), 'e2e-'));
  let server: Server | undefined;
  let browser: Browser | undefined;
  before(async () => {
    const vsix = [productVsix(), ...extensions.map((name) => fixtureVsix(name, home))];
    const flags = ['--enable-proposed-api', 'evolvetest.fake-lm'];
    [server, browser] = await Promise.all([
      Server.start({ home, extensions: vsix, flags, ...options }),
      launchBrowser(),
    ]);
  });
  after(async () => {
    await browser?.close();
    await server?.stop();
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
    get browser() {
      return started(browser);
    },
    open: (folder, context) => Window.open(started(browser), started(server).url, folder, context),
  };
}
