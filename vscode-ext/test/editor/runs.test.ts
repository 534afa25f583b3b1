import assert from 'node:assert/strict';

import * as vscode from 'vscode';

import { listConnectionFiles, locateDirectory } from '../../src/bridge/connectionFile';
import { parentOf } from '../../src/bridge/process';
import { until } from '../until';
import { Client } from './client';
import { waitingNet } from './net';

interface Runtime {
  readonly runtimeId: string;
  readonly workspaceFolders: string[];
  readonly methods: string[];
}

/** Waits for the next call of the command `test.sign`. `answer` answers the run. */
function nextSign(answer: unknown): Promise<unknown> {
  return new Promise((resolve) => {
    const registered = vscode.commands.registerCommand('test.sign', (sign: unknown) => {
      registered.dispose();
      resolve(sign);
      return answer;
    });
  });
}

suite('runs', () => {
  const root = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? '';

  test('the commands are there, and the extension can be activated', async () => {
    const extension = vscode.extensions.getExtension('run-bridge.run-bridge');
    await extension?.activate();
    assert.equal(extension?.isActive, true);
    const commands = await vscode.commands.getCommands(true);
    for (const name of ['runNet', 'debugNet', 'stopRun', 'attachRun', 'showRunMenu', 'showLog']) {
      assert.ok(commands.includes(`evolve.${name}`), name);
    }
  });

  test('a run starts its bridge, and the daemon receives its request', async () => {
    const { file, fifo } = waitingNet(`
import vscode_bridge
assert vscode_bridge.execute_command("test.sign", "from the run") == "to the run"
`);
    const signed = nextSign('to the run');
    const session = await vscode.commands.executeCommand<string>('evolve.runNet', file);
    assert.equal(await signed, 'from the run');
    const client = await Client.connect(session);
    try {
      const runtimes = await client.result<Runtime[]>('runtime/list');
      assert.deepEqual(
        runtimes.map(({ runtimeId, workspaceFolders }) => [runtimeId, workspaceFolders]),
        [[`vscode-${session}`, [root]]],
      );
      assert.ok(runtimes[0]?.methods.includes('vscode/chat'));
      const status = await client.result<{ session: string; counters: { requests: number } }>(
        'bridge/status',
      );
      assert.equal(status.session, session);
      assert.ok(status.counters.requests >= 1);
    } finally {
      client.close();
      fifo.open();
    }
  });

  test('daemon and net are one process tree below the terminal, and end together', async () => {
    const { file } = waitingNet(`
import os, vscode_bridge
vscode_bridge.execute_command("test.sign", os.getpid())
`);
    const signed = nextSign(null);
    const session = await vscode.commands.executeCommand<string>('evolve.runNet', file);
    const net = Number(await signed);
    const daemon =
      listConnectionFiles(locateDirectory(process.env)).find((run) => run.session === session)?.pid ?? 0;
    assert.equal(parentOf(net), daemon);
    const shells = await Promise.all(vscode.window.terminals.map(({ processId }) => processId));
    const terminal = vscode.window.terminals[shells.indexOf(parentOf(daemon))];
    assert.equal(terminal?.name, 'Run: waiting.evolve.yaml');
    terminal.dispose();
    await until('daemon and net to end', () => parentOf(daemon) === undefined && parentOf(net) === undefined);
    const left = listConnectionFiles(locateDirectory(process.env)).map((run) => run.session);
    assert.ok(!left.includes(session));
  });

  test('the port of a bridge is not offered for forwarding', () => {
    const attributes = vscode.workspace
      .getConfiguration('remote')
      .get<Record<string, object>>('portsAttributes');
    assert.deepEqual(attributes?.['bridge-daemon run'], { label: 'Run Bridge', onAutoForward: 'ignore' });
  });

  test('a file that is no net is not run', async () => {
    const started = await vscode.commands.executeCommand('evolve.runNet', vscode.Uri.file('/etc/hostname'));
    assert.equal(started, undefined);
  });
});
