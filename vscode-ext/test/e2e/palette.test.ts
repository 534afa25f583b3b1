import path from 'node:path';
import { describe, it } from 'node:test';

import { Fifo, net, workspace } from './nets';
import { Palette } from './palette';
import { stage } from './setup';

describe('the command palette', () => {
  const play = stage({ extensions: [] });

  it('offers the commands that are enabled, runs a net and stops it', async () => {
    const fifo = new Fifo(path.join(play.home, 'fifo'));
    const files = { 'waiting.evolve.yaml': net(`print("net waits")\n${fifo.code}`) };
    const window = await play.open(workspace(path.join(play.home, 'orders'), files));
    await window.openFile('waiting.evolve.yaml');
    // The button and the entry of the palette are enabled together: when the workspace is trusted.
    const button = window.page
      .locator('.editor-actions')
      .getByRole('button', { name: 'Run Net', disabled: false });
    await window.visible('the button to run, enabled', button);

    let palette = await Palette.open(window);
    await palette.type('Evolve: ');
    await palette.offers([
      'Evolve: Answer a Run of Another Window',
      'Evolve: Debug Net',
      'Evolve: Run Net',
      'Evolve: Show Log',
      'Evolve: Show Run Menu',
    ]);
    await window.screenshot('palette');
    await palette.type('Run Net');
    await palette.take('Evolve: Run Net');
    await window.terminalShows('net waits');

    await window.status('Evolve: 1 running');
    // The extension enables the command to stop before it changes its status bar item. The editor handles the requests of
    // all extensions of a window in order, so the command is enabled when this later request is done.
    await window.command('setContext', 'evolvetest.later', true);
    palette = await Palette.open(window);
    await palette.type('Evolve: Stop Run');
    await palette.take('Evolve: Stop Run');
    await window.terminalShows('ended with exit code 143');
    await window.status(/Evolve$/);
  });
});
