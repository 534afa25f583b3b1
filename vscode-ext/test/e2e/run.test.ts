import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { before, describe, it } from 'node:test';

import { listConnectionFiles } from '../../src/bridge/connectionFile';
import { backwards, Fifo, net, randomWord, workspace } from './nets';
import { repository, stage } from './setup';
import type { Window } from './window';

describe('running nets', () => {
  const play = stage({ extensions: ['fake-lm'] });
  const folder = path.join(play.home, 'orders');
  const word = randomWord();
  const example = readFileSync(path.join(repository, 'examples/VsCodeInterop.evolve.yaml'), 'utf8');
  const fifo = (name: string): Fifo => new Fifo(path.join(play.home, `${name}.fifo`));
  const [north, south] = [fifo('north'), fifo('south')];
  const [stuck, killed] = [fifo('stuck'), fifo('killed')];
  let window: Window;

  const running = (): number => listConnectionFiles(play.server.connectionFiles).length;

  before(async () => {
    workspace(folder, {
      'VsCodeInterop.evolve.yaml': example.replace('What is 2+2?', `Say ${word}`),
      'north.evolve.yaml': net(`
import vscode_bridge
print("answer of north:", vscode_bridge.chat("htron", model="echo"))
${north.code}
print("north goes on:", vscode_bridge.chat("niaga htron"))
`),
      'south.pnml.yaml': net(`
import vscode_bridge
print("south waits")
${south.code}
print("answer of south:", vscode_bridge.chat("htuos"))
`),
      'stuck.evolve.yaml': net(`print("stuck waits")\n${stuck.code}`),
      'killed.evolve.yaml': net(`print("killed waits")\n${killed.code}`),
      'choice.evolve.yaml': net(`
import vscode_bridge
print("you chose", vscode_bridge.show_message("Ship it?", "warning", buttons=["Yes", "No"], timeout=60))
`),
    });
    window = await play.open(folder);
  });

  it('shows the message on screen and the chat answer in the terminal', async () => {
    await window.openFile('VsCodeInterop.evolve.yaml');
    await window.command('evolve.runNet');
    await window.notification('The net asks a question');
    const shown = await window.terminalShows(new RegExp(`Answer: fake-echo .*${backwards(word)}`));
    assert.match(shown, /VsCodeInterop\.evolve\.yaml · bridge session [0-9a-f]{16}/);
    await window.terminalShows('ended with exit code 0');
    await window.status(/Evolve$/);
    await window.screenshot('run');
    assert.equal(running(), 0);
  });

  it('runs from the button in the title of the editor, and returns the choice of a button', async () => {
    await window.openFile('choice.evolve.yaml');
    await window.page.locator('.editor-actions').getByRole('button', { name: 'Run Net' }).first().click();
    const question = await window.notification('Ship it?');
    await window.status('Evolve: 1 running');
    await window.screenshot('buttons');
    await window.press(question, 'Yes');
    await window.terminalShows('you chose Yes');
    await window.terminalShows('ended with exit code 0');
  });

  it('keeps two runs at once apart', async () => {
    await window.openFile('north.evolve.yaml');
    await window.command('evolve.runNet');
    await window.terminalShows(/answer of north: .*: north/);
    await window.openFile('south.pnml.yaml');
    await window.command('evolve.runNet');
    await window.terminalShows('south waits');
    await window.status('Evolve: 2 running');
    assert.equal(running(), 2);
    south.open();
    const shown = await window.terminalShows(/answer of south: .*: south/);
    assert.doesNotMatch(shown, /north/);
    await window.terminalShows('ended with exit code 0');
    await window.status('Evolve: 1 running');
    await window.screenshot('two-runs');
    await window.choose('evolve.showRunMenu', 'Show the terminal of north.evolve.yaml');
    north.open();
    await window.terminalShows(/north goes on: .*: north again/);
    await window.status(/Evolve$/);
  });

  it('stops a run', async () => {
    await window.openFile('stuck.evolve.yaml');
    await window.command('evolve.runNet');
    await window.terminalShows('stuck waits');
    await window.status('Evolve: 1 running');
    await window.command('evolve.stopRun');
    await window.terminalShows('ended with exit code 143');
    await window.status(/Evolve$/);
    assert.equal(running(), 0);
    await window.screenshot('stopped');
  });

  it('says so when the daemon is killed', async () => {
    await window.openFile('killed.evolve.yaml');
    await window.command('evolve.runNet');
    await window.terminalShows('killed waits');
    const [daemon] = listConnectionFiles(play.server.connectionFiles);
    assert.ok(daemon);
    process.kill(daemon.pid, 'SIGKILL');
    await window.notification('has ended unexpectedly');
    await window.terminalShows('ended with exit code 137');
    await window.screenshot('daemon-killed');
  });

  it('shows the log of the extension and of the daemon, without any secret', async () => {
    await window.command('evolve.showLog');
    const output = window.page.locator('.part.panel .view-lines');
    await window.visible('the log', output.filter({ hasText: 'this window answers' }));
    const [log] = readFiles(path.join(play.home, 'data/logs'), /Run Bridge\.log$/);
    assert.ok(log);
    assert.match(log, /\[daemon [0-9a-f]{16}\] .*vscode\/chat/);
    assert.doesNotMatch(log, /[0-9a-f]{64}/, 'a token');
    assert.doesNotMatch(log, new RegExp(word), 'a question');
    await window.screenshot('log');
  });
});

function readFiles(folder: string, pattern: RegExp): string[] {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  return names
    .filter((name) => pattern.test(name))
    .map((name) => readFileSync(path.join(folder, name), 'utf8'));
}
