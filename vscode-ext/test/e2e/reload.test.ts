import assert from 'node:assert/strict';
import path from 'node:path';
import { describe, it } from 'node:test';

import { listConnectionFiles, type ConnectionFile } from '../../src/bridge/connectionFile';
import { isAlive } from '../../src/bridge/process';
import { until } from '../until';
import { backwards, Fifo, net, randomWord, workspace } from './nets';
import { stage } from './setup';
import type { Window } from './window';

describe('windows come and go', () => {
  const play = stage({ extensions: ['fake-lm'] });

  /** A window with a run that has called the bridge once, and waits for a FIFO before its next call. */
  async function waitingRun(name: string): Promise<{ window: Window; fifo: Fifo; word: string }> {
    const fifo = new Fifo(path.join(play.home, `${name}.fifo`));
    const word = randomWord();
    const code = `
import vscode_bridge
print("it begins:", vscode_bridge.chat("first"))
${fifo.code}
print("it goes on:", vscode_bridge.chat("${word}"))
vscode_bridge.show_message("The word is ${word}")
`;
    // Each has its own folder: windows on the same folder would find each other's terminals.
    const folder = workspace(path.join(play.home, name), { [`${name}.evolve.yaml`]: net(code) });
    const window = await play.open(folder);
    await window.openFile(`${name}.evolve.yaml`);
    await window.command('evolve.runNet');
    await window.terminalShows('it begins: fake-echo');
    return { window, fifo, word };
  }

  const published = (): ConnectionFile[] => listConnectionFiles(play.server.connectionFiles);

  it('a run goes on over a reload of its window', async () => {
    const { window, fifo, word } = await waitingRun('reloaded');
    const [daemon] = published();
    await window.reload();
    assert.deepEqual(published(), [daemon]);
    // The call is made while no window answers, and waits until this window has been reloaded.
    fifo.open();
    await window.notification(`The word is ${word}`);
    await window.command('workbench.action.terminal.focus');
    await window.terminalShows(new RegExp(`it goes on: .*${backwards(word)}`));
    await window.terminalShows('ended with exit code 0');
    await window.status(/Evolve$/);
    await window.screenshot('reloaded');
    assert.deepEqual(published(), []);
    await window.close();
  });

  it('a run is known again after a reload: it can be stopped', async () => {
    const { window } = await waitingRun('stopped');
    await window.reload();
    await window.status('Evolve: 1 running');
    await window.choose('evolve.showRunMenu', 'Show the terminal of stopped.evolve.yaml');
    await window.command('evolve.stopRun');
    await window.terminalShows('ended with exit code 143');
    await window.status(/Evolve$/);
    assert.deepEqual(published(), []);
    await window.close();
  });

  it('a second window on the folder stays out of a run until it is asked to answer', async () => {
    // The second window is opened before the run: if it opened later, it would ask for the terminals of the first
    // window, and take them if that one is too slow to refuse.
    const second = await play.open(workspace(path.join(play.home, 'shared'), { 'readme.txt': '' }));
    const { window, fifo, word } = await waitingRun('shared');
    // The daemon sends requests to the window that has the focus.
    await second.page.bringToFront();
    await second.page.locator('.part.titlebar').click();
    await second.choose('evolve.showRunMenu', 'Answer shared.evolve.yaml in this window');
    await second.status('Evolve: 1 running');
    fifo.open();
    await second.notification(`The word is ${word}`);
    await second.screenshot('second-window');
    await window.page.bringToFront();
    await window.terminalShows(new RegExp(`it goes on: .*${backwards(word)}`));
    await second.status(/Evolve$/);
    await window.status(/Evolve$/);
    await second.close();
    await window.close();
  });

  it('when the editor ends, nothing of a run is left', async () => {
    await waitingRun('abandoned');
    const [daemon] = published();
    assert.ok(daemon);
    await play.server.stop();
    await until('the daemon to end', () => !isAlive(daemon.pid, daemon.processStart));
    assert.deepEqual(published(), []);
  });
});
