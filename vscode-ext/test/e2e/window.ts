/**
 * A window of the editor in a real browser. The test extension `remote-control` executes commands; everything else is
 * done and checked in the page, as by a person.
 */

import { mkdirSync } from 'node:fs';
import path from 'node:path';

import { chromium, type Browser, type BrowserContext, type Locator, type Page } from 'playwright-core';

import { send, type Request } from './remoteControl';
import { environment, within } from './server';

const screenshots = path.resolve(__dirname, '../../../.cache/screenshots');

/** Starts a browser that writes below this folder, as the editor's server does. */
export function launchBrowser(home: string): Promise<Browser> {
  return chromium.launch({
    executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
    env: environment(home),
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
    ],
  });
}

/** Timeout of every wait. It is long, because machines that run tests are slow. */
const TIMEOUT_MS = 120_000;

let failures = 0;

export class Window {
  /** Resolved when the editor has told its server which terminals to keep during a reload. */
  private readonly terminalsKept: Promise<void>;

  private constructor(
    readonly page: Page,
    private readonly folder: string,
  ) {
    page.setDefaultTimeout(TIMEOUT_MS);
    this.terminalsKept = new Promise((resolve) => {
      page.on('websocket', (socket) => {
        socket.on('framesent', ({ payload }) => {
          if (/\$setTerminalLayoutInfo.*"terminal":\d/s.test(payload.toString('latin1'))) {
            resolve();
          }
        });
      });
    });
  }

  static async open(profile: BrowserContext, url: string, folder: string): Promise<Window> {
    const window = new Window(await profile.newPage(), folder);
    await window.page.goto(`${url}?folder=${encodeURIComponent(folder)}`);
    await window.loaded();
    return window;
  }

  /**
   * Reloads a window that shows a terminal. The editor records its terminals half a second after they have changed, and
   * does not restore a terminal that it has not recorded.
   */
  async reload(): Promise<void> {
    await this.eventually('the editor to note its terminals', this.terminalsKept);
    await this.page.reload();
    await this.loaded();
  }

  async close(): Promise<void> {
    await this.page.close();
  }

  /** Executes a command by its id. Resolves with its result when it is done. */
  async command(name: string, ...args: unknown[]): Promise<unknown> {
    const done = this.send({ action: 'execute', command: name, args });
    return this.eventually(`the end of the command ${name}`, done);
  }

  /** Executes a command that shows a list, and chooses an entry of that list. */
  async choose(command: string, entry: string): Promise<void> {
    const found = this.page.locator('.quick-input-list .monaco-list-row').filter({ hasText: entry });
    const take = async (): Promise<void> => {
      await (await this.visible(`"${entry}" in the list of ${command}`, found)).click();
    };
    // The command ends when the entry has been chosen.
    await Promise.all([this.command(command), take()]);
  }

  /** Opens a file of the workspace in an editor. */
  async openFile(name: string): Promise<void> {
    const opened = this.send({ action: 'open', file: path.join(this.folder, name) });
    await this.eventually(`the editor of ${name}`, opened);
    await this.visible(`the tab of ${name}`, this.page.locator('.tab.active').filter({ hasText: name }));
  }

  /** Waits for a notification that contains this text. */
  notification(text: string | RegExp): Promise<Locator> {
    const found = this.page.locator('.notification-list-item').filter({ hasText: text });
    return this.visible(`the notification ${String(text)}`, found);
  }

  /** Waits for a dialog that contains this text. */
  dialog(text: string | RegExp): Promise<Locator> {
    const found = this.page.locator('.monaco-dialog-box').filter({ hasText: text });
    return this.visible(`the dialog ${String(text)}`, found);
  }

  /** Waits for an element of the settings editor. */
  setting(text: string): Promise<Locator> {
    return this.visible(`the setting "${text}"`, this.page.locator('.settings-editor').getByText(text));
  }

  async press(within: Locator, button: string): Promise<void> {
    const found = within.getByRole('button', { name: button, exact: true });
    await (await this.visible(`the button "${button}"`, found)).click();
  }

  /** Waits until a visible terminal shows this text; returns all that it shows. */
  async terminalShows(text: string | RegExp): Promise<string> {
    const pattern = typeof text === 'string' ? text : text.source;
    const read = ([wanted, plain]: [string, boolean]): string | false => {
      const rows = [...document.querySelectorAll('.terminal-wrapper.active .xterm-rows > div')];
      const shown = rows.map((row) => row.textContent.replace(/\u00a0/g, ' ')).join('\n');
      const fits = (content: string): boolean =>
        plain ? content.includes(wanted) : new RegExp(wanted).test(content);
      // Joins lines that the terminal has wrapped.
      return fits(shown) || fits(shown.replace(/\n/g, '')) ? shown : false;
    };
    const wanted: [string, boolean] = [pattern, typeof text === 'string'];
    try {
      const handle = await this.page.waitForFunction(read, wanted);
      return (await handle.jsonValue()) as string;
    } catch (error) {
      const shown = await this.page.locator('.terminal-wrapper.active .xterm-rows').allInnerTexts();
      throw await this.failure(`${String(text)} in the terminal, which shows:\n${shown.join('\n')}`, error);
    }
  }

  /** Sends a line to the active terminal, which need not have the focus. */
  async type(line: string): Promise<void> {
    await this.command('workbench.action.terminal.sendSequence', { text: `${line}\r` });
  }

  /** Waits until the status bar item of the extension shows this text. */
  async status(text: string | RegExp): Promise<void> {
    const item = this.page.locator('.part.statusbar .statusbar-item').filter({ hasText: text });
    await this.visible(`${String(text)} in the status bar`, item);
  }

  /** Saves a screenshot as an artefact of the tests. */
  async screenshot(name: string): Promise<void> {
    mkdirSync(screenshots, { recursive: true });
    await this.page.screenshot({ path: path.join(screenshots, `${name}.png`) });
  }

  /** Waits for the first of these elements. */
  async visible(what: string, found: Locator): Promise<Locator> {
    await this.eventually(what, found.first().waitFor());
    return found.first();
  }

  /** Waits for something. An error names what was awaited, and a screenshot of the window. */
  async eventually<T>(what: string, something: Promise<T>): Promise<T> {
    try {
      return await within(TIMEOUT_MS, what, something);
    } catch (error) {
      throw await this.failure(what, error);
    }
  }

  private async failure(what: string, cause: unknown): Promise<Error> {
    const name = `failure-${path.basename(process.argv[1] ?? '', '.test.js')}-${++failures}`;
    await this.screenshot(name);
    return new Error(`waited for ${what} (see .cache/screenshots/${name}.png)`, { cause });
  }

  /** Sends a request to the test extension of this window, after waiting for its start. */
  private async send(request: Request): Promise<unknown> {
    const item = this.page.locator('[id="evolvetest.remote-control.socket"] [aria-label]');
    const socket = await item.getAttribute('aria-label');
    return send(socket ?? '', request);
  }

  private async loaded(): Promise<void> {
    await this.visible('the workbench', this.page.locator('.monaco-workbench .part.statusbar'));
  }
}

/** Matches exactly this text, and no longer text that contains it. */
export function exactly(text: string): RegExp {
  return new RegExp(`^${text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}$`);
}
