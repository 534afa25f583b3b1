/** Runs a program inside a real extension host, together with our extension from its source folder. */

import path from 'node:path';

import type { Browser } from 'playwright-core';

import { Server, type ServerOptions } from './server';
import { extensionsFolder } from './setup';
import { launchBrowser } from './window';

const extension = path.resolve(__dirname, '../..');

interface Needs extends Pick<ServerOptions, 'home' | 'settings' | 'environment'> {
  /** The bundle below `out` whose function `run` is called in the extension host. */
  readonly program: string;
  /** The folder that the window has open. */
  readonly folder: string;
  /** Called with each text that the program passes to `console.log`. */
  readonly onPrint?: (values: readonly unknown[]) => void;
}

interface ExtensionHost {
  readonly server: Server;
  /** Resolved when the program has ended. */
  readonly ended: Promise<void>;
}

/** Ends editor and browser when `use` is done. */
export async function inExtensionHost<T>(
  { program, folder, onPrint, ...options }: Needs,
  use: (host: ExtensionHost) => Promise<T>,
): Promise<T> {
  const server = await Server.start({
    ...options,
    extensions: extensionsFolder(['fake-lm'], options.home),
    // Without this flag, the page ignores the program to run.
    flags: ['--vscode-option', 'enable-smoke-test-driver'],
  });
  let browser: Browser | undefined;
  try {
    browser = await launchBrowser(options.home);
    const page = await browser.newPage();
    const ended = new Promise<void>((resolve, reject) => {
      page.on('crash', () => {
        reject(new Error('the page crashed'));
      });
      page
        .exposeFunction('codeAutomationExit', () => {
          resolve();
        })
        .catch(reject);
    });
    await page.exposeFunction('codeAutomationLog', (_type: string, values: unknown[]) => onPrint?.(values));
    const remote = (file: string): string => `vscode-remote://${server.authority}${file}`;
    const payload = [
      ['extensionDevelopmentPath', remote(extension)],
      ['extensionTestsPath', remote(path.join(extension, 'out', program))],
    ];
    const query = new URLSearchParams({ folder, payload: JSON.stringify(payload) });
    await page.goto(`${server.url}?${query.toString()}`);
    return await use({ server, ended });
  } finally {
    try {
      await browser?.close();
    } finally {
      await server.stop();
    }
  }
}
