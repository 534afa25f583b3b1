import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import path from 'node:path';
import { before, describe, it } from 'node:test';
import { promisify } from 'node:util';

import { backwards, Fifo, net, randomWord, workspace } from './nets';
import { repository, stage } from './setup';
import type { Window } from './window';

const client = path.join(repository, 'target/debug/bridge-client');

/** Runs `bridge-client` outside of the run. It finds the run by its connection file. */
async function ask(env: NodeJS.ProcessEnv, ...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(client, ['--timeout', '60', ...args], { env });
  return stdout;
}

describe('other programs beside the run', () => {
  const play = stage({ extensions: ['fake-lm'] });
  const fifo = new Fifo(path.join(play.home, 'fifo'));
  let window: Window;

  before(async () => {
    const folder = workspace(path.join(play.home, 'orders'), {
      'waiting.evolve.yaml': net(`print("net waits")\n${fifo.code}`),
    });
    window = await play.open(folder);
    await window.openFile('waiting.evolve.yaml');
    await window.command('evolve.runNet');
    await window.terminalShows('net waits');
  });

  it('make the four calls from a second terminal', async () => {
    const word = randomWord();
    await window.command('workbench.action.terminal.new');
    await window.terminalShows(/[$#] *$/);
    await window.type(`bridge-client chat --conversation talk ${word}`);
    await window.terminalShows(backwards(word));
    await window.type(`bridge-client show-message "Hello from ${word}"`);
    await window.notification(`Hello from ${word}`);
    await window.type(
      'bridge-client execute-command workbench.action.files.newUntitledFile && echo com""mand done',
    );
    await window.terminalShows('command done');
    await window.visible('a new tab', window.page.locator('.tab').filter({ hasText: 'Untitled-1' }));
    await window.command('workbench.action.terminal.focus');
    await window.type('clear; bridge-client history talk');
    const shown = await window.terminalShows(/assistant: fake-echo was given 1 message/);
    assert.match(shown, new RegExp(word));
    await window.screenshot('second-terminal');
  });

  it('are found when they are started by hand in a terminal', async () => {
    await window.command('workbench.action.terminal.new');
    await window.terminalShows(/[$#] *$/);
    await window.type(
      'bridge-daemon run --host editor -- sh -c \'bridge-client show-message "By hand"; echo all""right\'',
    );
    await window.notification('By hand');
    await window.terminalShows('allright');
    await window.status('Evolve: 1 running');
  });

  it('ask two at once, and each gets its own answer', async () => {
    const env = play.server.environment;
    const words = [randomWord(), randomWord()];
    const answers = await Promise.all(words.map((word) => ask(env, 'chat', word)));
    assert.deepEqual(
      answers.map((answer, index) => answer.includes(backwards(words[index] ?? ''))),
      [true, true],
    );
    const silent = execFile(client, ['--timeout', '60', 'chat', '--model', 'fake-silent', 'hold the line'], {
      env,
    });
    try {
      assert.match(await ask(env, 'chat', 'meanwhile'), /elihwnaem/);
    } finally {
      silent.kill('SIGINT');
    }
  });
});
