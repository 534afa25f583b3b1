import path from 'node:path';
import { before, describe, it } from 'node:test';

import { backwards, net, randomWord, workspace } from './nets';
import { stage } from './setup';
import type { Window } from './window';

const question = (word: string): string =>
  net(`
import vscode_bridge
print("answer:", vscode_bridge.chat("${word}", timeout=60))
`);

describe('a model that needs consent', () => {
  const play = stage({ extensions: ['fake-lm'] });
  const word = randomWord();
  let window: Window;

  before(async () => {
    const folder = workspace(
      path.join(play.home, 'guarded'),
      { 'ask.evolve.yaml': question(word) },
      { 'evolve.chat.defaultModel': 'guarded' },
    );
    window = await play.open(folder);
    await window.openFile('ask.evolve.yaml');
  });

  it('is not used when the person refuses', async () => {
    await window.command('evolve.runNet');
    const dialog = await window.dialog('wants to access the language models');
    await window.screenshot('consent');
    await window.press(dialog, 'Cancel');
    await window.terminalShows(/answer: \[.*no consent: the use of fake guarded was not allowed/);
    await window.terminalShows('ended with exit code 0');
    await window.screenshot('consent-refused');
  });

  it('is used when the person allows it', async () => {
    await window.command('evolve.runNet');
    await window.press(await window.dialog('The run of ask.evolve.yaml asks a language model'), 'Allow');
    await window.terminalShows(new RegExp(`answer: fake-guarded .*${backwards(word)}`));
  });
});

describe('no model at all', () => {
  const play = stage({ extensions: [] });
  let window: Window;

  before(async () => {
    window = await play.open(
      workspace(path.join(play.home, 'nobody'), { 'ask.evolve.yaml': question('hello') }),
    );
  });

  it('is an answer that says why, and the run goes on', async () => {
    await window.openFile('ask.evolve.yaml');
    await window.command('evolve.runNet');
    await window.terminalShows(/answer: \[.*no model: sign in to a provider/);
    await window.terminalShows('ended with exit code 0');
    await window.screenshot('no-model');
  });
});
