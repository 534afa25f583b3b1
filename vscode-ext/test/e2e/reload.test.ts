import assert from 'node:assert/strict';
import path from 'node:path';
import { before, describe, it } from 'node:test';

import { listConnectionFiles } from '../../src/bridge/connectionFile';
import { backwards, Gate, net, randomWord, workspace } from './nets';
import { stage } from './setup';
import type { Window } from './window';

describe('windows come and go', () => {
  const play = stage({ extensions: ['fake-lm'] });
  const folder = path.join(play.home, 'orders');
  const gate = (name: string): Gate => new Gate(path.join(play.home, `${name}.gate`));
  const [reloaded, closed, shared] = [gate('reloaded'), gate('closed'), gate('shared')];
  const words = Array.from({ length: 3 }, randomWord) as [string, string, string];
  let window: Window;

  before(async () => {
    const talks = (name: string, at: Gate, word: string): string =>
      net(`
import vscode_bridge
print("${name} begins:", vscode_bridge.chat("first"))
${at.code}
print("${name} goes on:", vscode_bridge.chat("${word}"))
vscode_bridge.show_message("${name} says ${word}")
`);
    workspace(folder, {
      'reloaded.evolve.yaml': talks('reloaded', reloaded, words[0]),
      'closed.evolve.yaml': talks('closed', closed, words[1]),
      'shared.evolve.yaml': talks('shared', shared, words[2]),
    });
    window = await play.open(folder);
  });

  it('a run goes on over a reload of its window', async () => {
    await window.openFile('reloaded.evolve.yaml');
    await window.command('Evolve: Run Net');
    await window.terminalShows('reloaded begins: fake-echo');
    const [before] = listConnectionFiles(play.server.connectionFiles);
    await window.reload();
    // The call is made while no window answers, and waits for this one to come back.
    reloaded.open();
    await window.notification(`reloaded says ${words[0]}`);
    await window.terminalShows(new RegExp(`reloaded goes on: .*${backwards(words[0])}`));
    await window.terminalShows('ended with exit code 0');
    await window.screenshot('reloaded');
    assert.ok(before);
    assert.deepEqual(listConnectionFiles(play.server.connectionFiles), []);
  });

  it('a run is known again after a reload: it can be stopped', async () => {
    await window.openFile('closed.evolve.yaml');
    await window.command('Evolve: Run Net');
    await window.terminalShows('closed begins: fake-echo');
    await window.reload();
    await window.status('Evolve: 1 running');
    await window.command('Evolve: Stop Run');
    await window.terminalShows('ended with exit code 143');
    await window.status(/Evolve$/);
  });

  it('a second window on the folder stays out of a run until it is asked to answer', async () => {
    await window.openFile('shared.evolve.yaml');
    await window.command('Evolve: Run Net');
    await window.terminalShows('shared begins: fake-echo');
    const second = await play.open(folder, window.context);
    await second.command('Evolve: Show Run Menu');
    await second.choose('Answer shared.evolve.yaml in this window');
    await second.status('Evolve: 1 running');
    // The daemon asks the window that has the focus.
    await second.page.bringToFront();
    await second.page.locator('.part.titlebar').click();
    shared.open();
    await second.notification(`shared says ${words[2]}`);
    await second.screenshot('second-window');
    await window.page.bringToFront();
    await window.terminalShows(new RegExp(`shared goes on: .*${backwards(words[2])}`));
    await second.status(/Evolve$/);
    await window.status(/Evolve$/);
  });
});
