/** A window of the editor in a real browser, driven as a person would drive it. */

import { mkdirSync } from 'node:fs';
import path from 'node:path';

import { chromium, type Browser, type BrowserContext, type Locator, type Page } from 'playwright-core';

import { within } from './server';

const screenshots = path.resolve(__dirname, '../../../.cache/screenshots');

export function launchBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
    ],
  });
}

/** How long something may take that a person waits for. Machines that run tests are slow. */
const PATIENCE = 60_000;

/** An entry of the command palette, of the list of files, or of a list that an extension shows. */
const ENTRY = '.quick-input-list .monaco-list-row';

let failures = 0;

export class Window {
  /** Resolved when the editor has told its server which terminals to keep over a reload. */
  private readonly terminalsKept: Promise<void>;

  private constructor(readonly page: Page) {
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
    const window = new Window(await profile.newPage());
    await window.page.goto(`${url}?folder=${encodeURIComponent(folder)}`);
    await window.loaded();
    return window;
  }

  /**
   * Reloads a window that shows a terminal. The editor notes its terminals half a second after
   * they have changed, and does not bring back one that it has not noted.
   */
  async reload(): Promise<void> {
    await within(PATIENCE, 'the editor to note its terminals', this.terminalsKept);
    await this.page.reload();
    await this.loaded();
  }

  async close(): Promise<void> {
    await this.page.close();
  }

  /** Runs a command through the palette, and chooses from the list that it shows, if it does. */
  async command(title: string, choice?: string): Promise<void> {
    await this.pick('F1', `>${title}`, title);
    if (choice === undefined) {
      return;
    }
    const entry = this.page.locator(ENTRY).filter({ hasText: choice }).first();
    for (const end = Date.now() + PATIENCE; Date.now() < end;) {
      try {
        await entry.click({ timeout: 10_000 });
        return;
      } catch {
        // Something else took the focus, and the list has closed.
        await this.pick('F1', `>${title}`, title);
      }
    }
    throw await this.failure(`"${choice}" in the list of "${title}"`);
  }

  /** Opens a file of the workspace by name. */
  async openFile(name: string): Promise<void> {
    await this.pick('Control+P', name, name);
    await this.visible(`the tab of ${name}`, this.page.locator('.tab.active').filter({ hasText: name }));
  }

  /** A notification that holds this text, once it is on screen. */
  notification(text: string | RegExp): Promise<Locator> {
    const found = this.page.locator('.notification-list-item').filter({ hasText: text });
    return this.visible(`the notification ${String(text)}`, found);
  }

  /** A dialog that holds this text. */
  dialog(text: string | RegExp): Promise<Locator> {
    const found = this.page.locator('.monaco-dialog-box').filter({ hasText: text });
    return this.visible(`the dialog ${String(text)}`, found);
  }

  /** Something in the settings editor. */
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
      // Lines that the terminal has broken at its width are one line again.
      return fits(shown) || fits(shown.replace(/\n/g, '')) ? shown : false;
    };
    try {
      const wanted: [string, boolean] = [pattern, typeof text === 'string'];
      const handle = await this.page.waitForFunction(read, wanted, { timeout: PATIENCE });
      return (await handle.jsonValue()) as string;
    } catch {
      const shown = await this.page.locator('.terminal-wrapper.active .xterm-rows').allInnerTexts();
      throw await this.failure(`${String(text)} in the terminal, which shows:\n${shown.join('\n')}`);
    }
  }

  /** Types a line into the terminal that has the focus. */
  async type(line: string): Promise<void> {
    await this.page.keyboard.type(line);
    await this.page.keyboard.press('Enter');
  }

  /** The status bar item of the extension, once it shows this. */
  async status(text: string | RegExp): Promise<void> {
    const item = this.page.locator('.part.statusbar .statusbar-item').filter({ hasText: text });
    await this.visible(`${String(text)} in the status bar`, item);
  }

  /** Keeps a picture as an artefact of the tests. */
  async screenshot(name: string): Promise<void> {
    mkdirSync(screenshots, { recursive: true });
    await this.page.screenshot({ path: path.join(screenshots, `${name}.png`) });
  }

  /** Waits for the first of these elements. */
  async visible(what: string, found: Locator): Promise<Locator> {
    try {
      await found.first().waitFor({ timeout: PATIENCE });
    } catch {
      throw await this.failure(what);
    }
    return found.first();
  }

  private async failure(what: string): Promise<Error> {
    const name = `failure-${path.basename(process.argv[1] ?? '', '.test.js')}-${++failures}`;
    await this.screenshot(name);
    return new Error(`waited ${PATIENCE / 1000} seconds for ${what} (see .cache/screenshots/${name}.png)`);
  }

  /**
   * Opens a list by its key, narrows it down and takes an entry. A busy page loses keys; a list
   * that opens early lacks entries and never gets them; one that opens while something else takes
   * the focus closes again. None of this can be waited for, but all of it shows before the entry
   * is clicked: then the list is opened anew. The click has been taken when the entry goes away.
   */
  private async pick(key: string, filter: string, name: string): Promise<void> {
    const input = this.page.locator('.quick-input-widget input.input').first();
    const label = this.page.locator('.label-name').filter({ hasText: exactly(name) });
    const entry = this.page.locator(ENTRY).filter({ has: label }).first();
    for (const end = Date.now() + PATIENCE; Date.now() < end;) {
      try {
        await this.page.keyboard.press(key);
        await input.fill(filter, { timeout: 5_000 });
        await entry.click({ timeout: 3_000 });
        await entry.waitFor({ state: 'hidden', timeout: 10_000 });
        return;
      } catch {
        await this.page.keyboard.press('Escape');
      }
    }
    throw await this.failure(`"${name}" in the list behind ${key}`);
  }

  private async loaded(): Promise<void> {
    await this.visible('the workbench', this.page.locator('.monaco-workbench .part.statusbar'));
  }
}

function exactly(text: string): RegExp {
  return new RegExp(`^${text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}$`);
}
