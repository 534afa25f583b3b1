/** The command palette, driven by keys as a person drives it. */

import type { Locator } from 'playwright-core';

import { exactly, type Window } from './window';

/**
 * The palette reads the enabled commands once, when it opens, and filters its list some time after a key was pressed. It
 * closes when an entry is chosen, and also when something else takes the focus. So each step waits until the palette
 * shows the effect of the step before. A test opens the palette when the commands that it needs are enabled, and checks
 * the effect of the chosen command.
 */
export class Palette {
  private readonly widget: Locator;
  private typed = '>';

  private constructor(private readonly window: Window) {
    this.widget = window.page.locator('.quick-input-widget');
  }

  static async open(window: Window): Promise<Palette> {
    const palette = new Palette(window);
    await window.page.keyboard.press('F1');
    await palette.inputHoldsTyped();
    return palette;
  }

  async type(text: string): Promise<void> {
    await this.window.page.keyboard.type(text);
    this.typed += text;
    await this.inputHoldsTyped();
  }

  /** Waits until the palette offers these entries and no others. Each of them must fit into its list. */
  async offers(names: readonly string[]): Promise<void> {
    const offered = (wanted: string): boolean => {
      const labels = [...document.querySelectorAll('.quick-input-widget .monaco-list-row .label-name')];
      const texts = labels.map((label) => label.textContent.replace(/\u00a0/g, ' '));
      return texts.sort().join('\n') === wanted;
    };
    const wanted = [...names].sort().join('\n');
    const found = this.window.page.waitForFunction(offered, wanted);
    await this.window.eventually(`exactly these entries of the palette:\n${wanted}\n`, found);
  }

  /** Waits until Enter would choose this entry, and presses it. */
  async take(name: string): Promise<void> {
    const label = this.widget.locator('.monaco-list-row.focused .label-name');
    const focused = label.filter({ hasText: exactly(name) });
    await this.window.visible(`"${name}" as the entry that Enter takes`, focused);
    await this.window.page.keyboard.press('Enter');
    await this.window.eventually('the end of the palette', this.widget.waitFor({ state: 'hidden' }));
  }

  /** Waits until the input has the focus and contains everything that was typed. */
  private async inputHoldsTyped(): Promise<void> {
    const holds = (wanted: string): boolean => {
      const focused = document.activeElement;
      return focused instanceof HTMLInputElement && focused.value === wanted;
    };
    await this.window.visible('the input of the palette', this.widget.locator('input.input:focus'));
    const held = this.window.page.waitForFunction(holds, this.typed);
    await this.window.eventually(`"${this.typed}" in the input of the palette`, held);
  }
}
