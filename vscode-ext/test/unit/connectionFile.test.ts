import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';

import {
  awaitConnectionFile,
  listConnectionFiles,
  locateDirectory,
  readConnectionFile,
  readEndpoint,
} from '../../src/bridge/connectionFile';
import { ancestry, isAlive, parentOf } from '../../src/bridge/process';

const base = mkdtempSync(path.join(os.tmpdir(), 'run-bridge-unit-'));
after(() => {
  rmSync(base, { recursive: true });
});

function ownStart(pid = process.pid): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]);
}

function newDirectory(): string {
  const directory = mkdtempSync(path.join(base, 'files-'));
  chmodSync(directory, 0o700);
  return directory;
}

function content(session: string, changes: object = {}): string {
  return JSON.stringify({
    ...{ schema: 1, session, pid: process.pid, processStart: ownStart(), version: '0' },
    ...{ addr: 'ws://127.0.0.1:1/', token: 'client', directory: '/orders', wantsEditor: true, startedAt: 5 },
    ...changes,
  });
}

function put(directory: string, name: string, text: string, mode = 0o600): void {
  writeFileSync(path.join(directory, name), text, { mode });
  chmodSync(path.join(directory, name), mode);
}

test('the place follows the environment as the daemon does', () => {
  const all = { XDG_RUNTIME_DIR: base, XDG_STATE_HOME: '/s', HOME: '/h' };
  assert.equal(locateDirectory(all), path.join(base, 'run-bridge'));
  assert.equal(locateDirectory({ ...all, XDG_RUNTIME_DIR: '/nonexistent' }), '/s/run-bridge');
  assert.equal(locateDirectory({ ...all, XDG_RUNTIME_DIR: 'relative' }), '/s/run-bridge');
  assert.equal(locateDirectory({ ...all, XDG_RUNTIME_DIR: '' }), '/s/run-bridge');
  assert.equal(locateDirectory({ HOME: '/h' }), '/h/.local/state/run-bridge');
});

test('a host finds address and token of a living daemon', () => {
  const directory = newDirectory();
  put(directory, 'a.json', content('a'));
  assert.equal(readEndpoint(directory, 'a'), undefined, 'without the host file');
  put(directory, 'a.host.json', content('a', { hostToken: 'host' }));
  assert.deepEqual(readEndpoint(directory, 'a'), {
    addr: 'ws://127.0.0.1:1/',
    session: 'a',
    hostToken: 'host',
  });
});

test('only files that can be trusted count', () => {
  const directory = newDirectory();
  put(directory, 'real.json', content('real'));
  put(directory, 'open.json', content('open'), 0o644);
  put(directory, 'renamed.json', content('other'));
  put(directory, 'newer.json', content('newer', { schema: 2 }));
  put(directory, 'dead.json', content('dead', { pid: 999_999_999 }));
  put(directory, 'reused.json', content('reused', { processStart: 1 }));
  put(directory, 'noise.json', '{');
  put(directory, 'huge.json', content('huge', { directory: 'x'.repeat(70_000) }));
  put(directory, 'lacking.json', content('lacking', { addr: undefined }));
  put(base, 'linked.json', content('linked'));
  symlinkSync(path.join(base, 'linked.json'), path.join(directory, 'linked.json'));
  mkdirSync(path.join(directory, 'folder.json'));
  assert.deepEqual(
    listConnectionFiles(directory).map(({ session }) => session),
    ['real'],
  );
  assert.equal(readConnectionFile(directory, '../real'), undefined);
});

test('a directory that others may enter is not trusted', () => {
  const directory = newDirectory();
  put(directory, 'a.json', content('a'));
  assert.ok(readConnectionFile(directory, 'a'));
  chmodSync(directory, 0o755);
  assert.equal(readConnectionFile(directory, 'a'), undefined);
});

test('runs are listed newest first, and no directory is no run', () => {
  const directory = newDirectory();
  put(directory, 'old.json', content('old', { startedAt: 1 }));
  put(directory, 'new.json', content('new', { startedAt: 2 }));
  assert.deepEqual(
    listConnectionFiles(directory).map(({ session }) => session),
    ['new', 'old'],
  );
  assert.deepEqual(listConnectionFiles(path.join(base, 'absent')), []);
});

test('a file is awaited', async () => {
  const directory = path.join(newDirectory(), 'made-by-the-wait');
  const { signal } = new AbortController();
  const awaited = awaitConnectionFile(directory, 'a', signal);
  put(directory, 'other.json', content('other'));
  put(directory, 'a.json', content('a'));
  assert.equal((await awaited).session, 'a');
});

test('a file that is there already is seen though nothing changes', { timeout: 30_000 }, async () => {
  const directory = newDirectory();
  put(directory, 'a.json', content('a'));
  assert.equal((await awaitConnectionFile(directory, 'a', new AbortController().signal)).session, 'a');
});

test('a wait ends with the reason of its abort', async () => {
  const directory = newDirectory();
  const controller = new AbortController();
  const awaited = awaitConnectionFile(directory, 'never', controller.signal);
  controller.abort(new Error('the terminal was closed'));
  await assert.rejects(awaited, /the terminal was closed/);
  await assert.rejects(awaitConnectionFile(directory, 'never', controller.signal), /the terminal was closed/);
});

test('a process is named by pid and start, and knows its parent', async () => {
  const child = spawn('cat', { stdio: ['pipe', 'ignore', 'ignore'] });
  const pid = child.pid ?? 0;
  const start = ownStart(pid);
  assert.equal(isAlive(pid, start), true);
  assert.equal(isAlive(pid, start + 1), false);
  assert.equal(parentOf(pid), process.pid);
  assert.deepEqual(ancestry(pid).slice(0, 2), [pid, process.pid]);
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.stdin.end();
  await ended;
  assert.equal(isAlive(pid, start), false);
  assert.equal(parentOf(pid), undefined);
});
