import assert from 'node:assert/strict';
import { readFileSync, watch } from 'node:fs';
import path from 'node:path';
import { before, describe, it } from 'node:test';

import { workspace } from './nets';
import { copyFixture } from './server';
import { stage } from './setup';
import type { Window } from './window';

describe('debugging a net', () => {
  // Neither the daemon's program nor the bridge of runs is needed.
  const settings = { 'evolve.daemon.path': '/nonexistent/bridge-daemon', 'evolve.runBridge.enabled': false };
  const play = stage({ extensions: ['fake-lm'], settings });
  const folder = path.join(play.home, 'orders');
  let window: Window;

  before(async () => {
    const requests = [
      { type: 'vscode/showMessage', params: { message: 'Hello from the debugger', level: 'info' } },
      { type: 'vscode/chat', params: { message: 'abc', timeout: 60_000 } },
      { type: 'vscode/executeCommand', params: { command: 'setContext', args: ['a', 1], timeout: 60_000 } },
      { type: 'vscode/chat', params: { message: 'hi', model: 'fake-silent', timeout: 500 } },
      { type: 'vscode/chat', params: {} },
      { type: 'vscode/fly', params: {} },
    ];
    workspace(folder, {
      'debugged.evolve.yaml': requests.map((request) => JSON.stringify(request)).join('\n'),
      'readme.txt': 'Makes the folder.',
    });
    window = await play.open(folder);
  });

  it('says what is missing when enginepy is not installed', async () => {
    await window.openFile('debugged.evolve.yaml');
    await window.command('evolve.debugNet');
    await window.notification('Debugging needs the package enginepy');
    await window.screenshot('no-enginepy');
  });

  it('answers the requests of the debug adapter', async () => {
    copyFixture('enginepy', path.join(folder, 'enginepy'));
    const file = path.join(folder, 'debugged.evolve.yaml.answers');
    const written = answersOf(file, 6);
    await Promise.all([window.command('evolve.debugNet'), window.notification('Hello from the debugger')]);
    const answers = await window.eventually('six answers', written);
    await window.screenshot('debug');
    assert.deepEqual(
      answers.map(({ requestId, success }) => [requestId, success]),
      [
        [0, true],
        [1, true],
        [2, true],
        [3, false],
        [4, false],
        [5, false],
      ],
    );
    assert.deepEqual(answers[0]?.result, {});
    assert.match((answers[1]?.result as { response: string }).response, /cba$/);
    assert.deepEqual(answers[2]?.result, {});
    assert.match(answers[3]?.error ?? '', /timeout/i);
    assert.match(answers[4]?.error ?? '', /Missing message parameter/);
    assert.match(answers[5]?.error ?? '', /Unknown request type: vscode\/fly/);
  });
});

interface Answer {
  readonly requestId: number;
  readonly success: boolean;
  readonly result?: unknown;
  readonly error?: string;
}

/** Waits until a file has so many lines, and returns them. */
function answersOf(file: string, count: number): Promise<Answer[]> {
  return new Promise((resolve) => {
    const watcher = watch(path.dirname(file), { persistent: false }, (_event, name) => {
      if (name !== path.basename(file)) {
        return;
      }
      const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
      if (lines.length >= count) {
        watcher.close();
        resolve(lines.map((line) => JSON.parse(line) as Answer));
      }
    });
  });
}
