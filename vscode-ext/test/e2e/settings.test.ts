import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import path from 'node:path';
import { describe, it } from 'node:test';

import { listConnectionFiles } from '../../src/bridge/connectionFile';
import { backwards, Fifo, net as makeNet, randomWord, workspace } from './nets';
import { freePort } from './server';
import { stage } from './setup';

describe('settings', () => {
  const play = stage({ extensions: ['fake-lm', 'fake-python'] });
  const folder = (name: string): string => path.join(play.home, name);

  it('enabled: false runs without daemon or variables, and calls raise a clear error', async () => {
    const fifo = new Fifo(folder('disabled.fifo'));
    const code = `
import os
print("variables:", [name for name in os.environ if "RUN_BRIDGE" in name])
${fifo.code}
import vscode_bridge
try:
    vscode_bridge.chat("hello")
except RuntimeError as error:
    print("RuntimeError:", error)
`;
    const files = { 'alone.evolve.yaml': makeNet(code) };
    const window = await play.open(
      workspace(folder('disabled'), files, { 'evolve.runBridge.enabled': false }),
    );
    await window.openFile('alone.evolve.yaml');
    await window.command('evolve.runNet');
    const shown = await window.terminalShows('variables: []');
    assert.match(shown, /without a bridge/);
    await window.status('Evolve: 1 running');
    assert.deepEqual(listConnectionFiles(play.server.connectionFiles), []);
    fifo.open();
    await window.terminalShows(/RuntimeError: .*bridge/i);
    await window.terminalShows('ended with exit code 0');
    await window.status(/Evolve$/);
    await window.screenshot('disabled');

    await window.command('evolve.runNet');
    await window.status('Evolve: 1 running');
    await window.terminalShows('variables: []');
    await window.command('evolve.stopRun');
    await window.terminalShows('ended with exit code 130');
    await window.close();
  });

  it('a fixed port that is taken, even by a run of ours: another one is offered', async () => {
    const port = await freePort();
    const fifo = new Fifo(folder('ported.fifo'));
    const tell = 'import os\nprint("bridge at", os.environ["RUN_BRIDGE_ADDR"])';
    const files = {
      'first.evolve.yaml': makeNet(`${tell}\n${fifo.code}`),
      'second.evolve.yaml': makeNet(tell),
    };
    const window = await play.open(workspace(folder('ported'), files, { 'evolve.runBridge.port': port }));
    await window.openFile('first.evolve.yaml');
    await window.command('evolve.runNet');
    await window.terminalShows(`bridge at ws://127.0.0.1:${port}/`);
    await window.openFile('second.evolve.yaml');
    await window.command('evolve.runNet');
    const message = await window.notification(`Port ${port}`);
    await window.screenshot('port-taken');
    await window.press(message, 'Use a Free Port');
    await window.terminalShows(new RegExp(`bridge at ws://127.0.0.1:(?!${port}/)\\d+/`));
    fifo.open();
    await window.close();
  });

  it('policy ask: the person decides about each command', async () => {
    const code = `
import vscode_bridge
for attempt in range(4):
    try:
        vscode_bridge.execute_command("workbench.action.files.newUntitledFile", timeout=60)
        print("attempt", attempt, "was allowed")
    except RuntimeError as error:
        print("attempt", attempt, "failed:", error)
`;
    const files = { 'commands.evolve.yaml': makeNet(code) };
    const window = await play.open(workspace(folder('careful'), files, { 'evolve.commands.policy': 'ask' }));
    await window.openFile('commands.evolve.yaml');
    await window.command('evolve.runNet');
    const question = 'wants to execute the command workbench.action.files.newUntitledFile';
    const first = await window.notification(question);
    await window.screenshot('policy-ask');
    await window.press(first, 'Deny');
    await window.terminalShows(/attempt 0 failed: .*not allowed in the editor/);
    await window.press(await window.notification(question), 'Allow');
    await window.terminalShows('attempt 1 was allowed');
    await window.press(await window.notification(question), 'Allow for This Run');
    await window.terminalShows('attempt 2 was allowed');
    await window.terminalShows('attempt 3 was allowed');
    await window.terminalShows('ended with exit code 0');
    await window.close();
  });

  it('a bare Python without our dependencies, chosen in the Python extension, is enough', async () => {
    const python = folder('bare-python');
    execFileSync('python3', ['-m', 'venv', '--without-pip', python]);
    assert.throws(() =>
      execFileSync(path.join(python, 'bin/python'), ['-c', 'import yaml'], { stdio: 'pipe' }),
    );
    const word = randomWord();
    const code = `
import sys, vscode_bridge
print("prefix", sys.prefix)
print(vscode_bridge.chat("${word}"))
`;
    const files = { 'bare.evolve.yaml': makeNet(code), '.chosen-python': path.join(python, 'bin/python') };
    const window = await play.open(workspace(folder('bare'), files));
    await window.openFile('bare.evolve.yaml');
    await window.command('evolve.runNet');
    await window.terminalShows(`prefix ${python}`);
    await window.terminalShows(backwards(word));
    await window.screenshot('bare-python');
    await window.close();
  });

  it("a command of one's own runs the net", async () => {
    const settings = {
      'evolve.run.command': ['/bin/sh', '-c', 'echo "it runs $1 in $PWD"', 'sh', '${fileBasename}'],
    };
    const files = { 'it\'s "my net".evolve.yaml': makeNet('pass') };
    const window = await play.open(workspace(folder('own command'), files, settings));
    await window.openFile('it\'s "my net".evolve.yaml');
    await window.command('evolve.runNet');
    await window.terminalShows(`it runs it's "my net".evolve.yaml in ${folder('own command')}`);
    await window.close();
  });

  it('a Python that cannot be started is said, with a way to the setting', async () => {
    const settings = { 'evolve.python.path': '/nonexistent/python' };
    const window = await play.open(
      workspace(folder('no python'), { 'x.evolve.yaml': makeNet('pass') }, settings),
    );
    await window.openFile('x.evolve.yaml');
    await window.command('evolve.runNet');
    const message = await window.notification('/nonexistent/python: there is no such program');
    await window.press(message, 'Choose Python');
    await window.setting('Python that runs nets');
    await window.screenshot('no-python');
    await window.close();
  });
});

describe('a daemon that is not there', () => {
  const play = stage({
    extensions: [],
    damage: (product) => {
      rmSync(path.join(product, 'bundled/bin'), { recursive: true });
    },
  });

  it('is said, with a way to the setting and one to run without it', async () => {
    const files = { 'x.evolve.yaml': makeNet('print("it runs")') };
    // A workspace must not choose the daemon. This one tries to, with a program that exists.
    const settings = { 'evolve.daemon.path': '/bin/true' };
    const window = await play.open(workspace(path.join(play.home, 'x'), files, settings));
    await window.openFile('x.evolve.yaml');
    await window.command('evolve.runNet');
    await window.press(await window.notification('bridge-daemon was not found'), 'Open Setting');
    await window.setting('Path of the bridge-daemon program');
    await window.screenshot('no-daemon');
    await window.page.keyboard.press('Escape');
    await window.command('evolve.runNet');
    await window.press(await window.notification('bridge-daemon was not found'), 'Run Without Bridge');
    await window.terminalShows('it runs');
  });
});

describe('a workspace that is not trusted', () => {
  const play = stage({ extensions: [], trust: 'ask' });

  it('runs nothing', async () => {
    const files = { 'x.evolve.yaml': makeNet('print("it runs")') };
    const window = await play.open(workspace(path.join(play.home, 'x'), files));
    await window.status('Restricted Mode');
    await window.openFile('x.evolve.yaml');
    const run = window.page
      .locator('.editor-actions')
      .getByRole('button', { name: 'Run Net', disabled: true });
    await window.visible('the button to run, disabled', run);
    await window.screenshot('untrusted');
  });
});
