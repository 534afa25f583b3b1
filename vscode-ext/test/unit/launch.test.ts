import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';

import { defaultTemplate, expand, stayOpen, variables, withBridge } from '../../src/launch/commandLine';
import { findDaemon } from '../../src/launch/daemonBinary';
import { BRIDGE_VARIABLES, pythonEnvironment } from '../../src/launch/environment';
import { isNetFile } from '../../src/launch/net';
import { askPython, choosePython, isTooOld } from '../../src/launch/python';
import { RunFolder } from '../../src/launch/runFolder';

const base = mkdtempSync(path.join(os.tmpdir(), 'run-bridge-unit-'));
after(() => {
  rmSync(base, { recursive: true });
});

/** A new folder with these files. */
function folder(files: Record<string, string> = {}, mode = 0o644): string {
  const directory = mkdtempSync(path.join(base, 'folder-'));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(directory, name)), { recursive: true });
    writeFileSync(path.join(directory, name), text, { mode });
  }
  return directory;
}

test('nets are known by the end of their names', () => {
  assert.deepEqual(['a.evolve.yaml', 'b.pnml.yaml', 'c.yaml', 'evolve.yaml.txt'].map(isNetFile), [
    true,
    true,
    false,
    false,
  ]);
});

test('the daemon comes from the setting, the bundle, PATH, in this order', () => {
  const [setting, bundled, onPath, empty] = [
    folder({ mine: '' }, 0o755),
    folder({ 'bridge-daemon': '' }, 0o755),
    folder({ 'bridge-daemon': '' }, 0o755),
    folder(),
  ];
  const search = [empty, onPath].join(path.delimiter);
  assert.deepEqual(findDaemon({ setting: `${setting}/mine`, bundled, path: search }), {
    kind: 'found',
    path: `${setting}/mine`,
  });
  assert.deepEqual(findDaemon({ setting: '', bundled, path: search }), {
    kind: 'found',
    path: `${bundled}/bridge-daemon`,
  });
  assert.deepEqual(findDaemon({ setting: '', bundled: empty, path: search }), {
    kind: 'found',
    path: `${onPath}/bridge-daemon`,
  });
  assert.deepEqual(findDaemon({ setting: '', bundled: empty, path: empty }), { kind: 'missing' });
  assert.deepEqual(findDaemon({ setting: '', bundled: empty, path: undefined }), { kind: 'missing' });
});

test('a setting that names no program is said, not passed over', () => {
  const bundled = folder({ 'bridge-daemon': '' }, 0o755);
  for (const setting of ['/nonexistent/daemon', bundled, path.join(folder({ text: '' }), 'text')]) {
    assert.deepEqual(findDaemon({ setting, bundled, path: '' }), { kind: 'settingWrong', path: setting });
  }
});

test('a bundled daemon that lost its mode gets it back', () => {
  const bundled = folder({ 'bridge-daemon': '' });
  assert.deepEqual(findDaemon({ setting: '', bundled, path: '' }), {
    kind: 'found',
    path: `${bundled}/bridge-daemon`,
  });
});

test('a relative entry of PATH would let a workspace choose the daemon', () => {
  const directory = folder({ 'bridge-daemon': '' }, 0o755);
  const before = process.cwd();
  process.chdir(directory);
  try {
    assert.deepEqual(findDaemon({ setting: '', bundled: folder(), path: `.${path.delimiter}` }), {
      kind: 'missing',
    });
  } finally {
    process.chdir(before);
  }
});

test('templates are filled in item by item, without a shell', () => {
  const known = variables('/usr/bin/python3', '/my nets/it\'s "one".evolve.yaml', '/my nets');
  assert.deepEqual(expand(defaultTemplate(true), known), [
    ...['/usr/bin/python3', '-m', 'enginepy.pnml_engine', '/my nets/it\'s "one".evolve.yaml'],
  ]);
  assert.deepEqual(
    expand(['run', '--in=${fileDirname}', '${fileBasename}', '${workspaceFolder}', '$HOME'], known),
    [...['run', '--in=/my nets', 'it\'s "one".evolve.yaml', '/my nets', '$HOME']],
  );
  assert.throws(() => expand(['${pyton}'], known), /no variable \$\{pyton\}: use \$\{python\}, /);
  assert.throws(() => expand(['${toString}'], known), /no variable/);
});

test('the bridge wraps the command', () => {
  const options = { daemon: '/d', session: 's', port: 0, logFile: '/l', logLevel: 'info' };
  const wrapped = withBridge(['python3', '--port', '9'], options);
  assert.deepEqual(wrapped, [
    ...['/d', 'run', '--host', 'editor', '--session', 's', '--log', 'info', '--log-file', '/l'],
    ...['--', 'python3', '--port', '9'],
  ]);
  assert.deepEqual(withBridge([], { ...options, port: 81 }).slice(6, 8), ['--port', '81']);
});

test('a terminal stays open until Enter and tells the exit code', async () => {
  const directory = folder();
  const exitFile = path.join(directory, 'exit');
  const { shellPath, shellArgs } = stayOpen(
    ['sh', '-c', 'echo "$1"; exit 3', 'x', 'it\'s "quoted" $HOME'],
    exitFile,
  );
  const child = spawn(shellPath, shellArgs, { stdio: ['pipe', 'pipe', 'inherit'] });
  let printed = '';
  await new Promise<void>((resolve) => {
    child.stdout.on('data', (data: Buffer) => {
      printed += data.toString();
      if (printed.includes('Press Enter')) {
        resolve();
      }
    });
  });
  assert.equal(readFileSync(exitFile, 'utf8'), '3\n');
  assert.match(printed, /^it's "quoted" \$HOME\n/);
  assert.match(printed, /ended with exit code 3/);
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.stdin.end('\n');
  assert.equal(await ended, 0);
});

test('Python comes from the setting, the Python extension, PYTHON_PATH, in this order', () => {
  assert.equal(choosePython({ setting: 'a', chosen: 'b', variable: 'c' }), 'a');
  assert.equal(choosePython({ setting: '', chosen: 'b', variable: 'c' }), 'b');
  assert.equal(choosePython({ setting: '', chosen: undefined, variable: 'c' }), 'c');
  assert.equal(choosePython({ setting: '', chosen: undefined, variable: '' }), 'python3');
});

test('a Python tells what it can do', async () => {
  const bare = await askPython('python3', folder(), process.env);
  assert.equal(bare.version[0], 3);
  assert.deepEqual([bare.engine, bare.adapter], [false, null]);
  const workspace = folder({
    'enginepy/__init__.py': 'print("noise")',
    'enginepy/pnml_engine.py': '',
    'enginepy/pnml_dap.py': '',
  });
  const rich = await askPython('python3', workspace, process.env);
  assert.deepEqual([rich.engine, rich.adapter], [true, path.join(workspace, 'enginepy/pnml_dap.py')]);
  const broken = await askPython(
    'python3',
    folder({ 'enginepy/__init__.py': 'raise ValueError' }),
    process.env,
  );
  assert.deepEqual([broken.engine, broken.adapter], [false, null]);
});

test('a Python that is none says why', async () => {
  await assert.rejects(askPython('/nonexistent/python', base, process.env), /no such program/);
  await assert.rejects(askPython('true', base, process.env), /did not answer as Python 3 does/);
  await assert.rejects(askPython('false', base, process.env), /Command failed/);
});

test('Python older than 3.9 is too old', () => {
  assert.deepEqual(
    [
      [2, 7],
      [3, 8],
      [3, 9],
      [3, 13],
      [4, 0],
    ].map(([a, b]) => isTooOld([a ?? 0, b ?? 0])),
    [true, true, false, false, false],
  );
});

test('PYTHONPATH keeps what the user has', () => {
  assert.deepEqual(pythonEnvironment('/bundle', undefined), { PYTHONPATH: '/bundle/path' });
  assert.deepEqual(pythonEnvironment('/bundle', '/a:/b'), { PYTHONPATH: '/bundle/path:/a:/b' });
  assert.deepEqual(pythonEnvironment('/bundle', '/bundle/path:/a'), { PYTHONPATH: '/bundle/path:/a' });
  assert.equal(new Set(BRIDGE_VARIABLES).size, 6);
});

test("bundled packages come last, and the user's sitecustomize still runs", () => {
  const sitecustomize = readFileSync(path.join(__dirname, '../../python/sitecustomize.py'), 'utf8');
  const bundle = folder({
    'path/sitecustomize.py': sitecustomize,
    'packages/only_bundled.py': 'origin = "bundle"',
    'packages/in_both/__init__.py': 'origin = "bundle"',
  });
  const own = folder({
    'sitecustomize.py': 'import builtins; builtins.customized = True',
    'in_both/__init__.py': 'origin = "user"',
  });
  const print = 'import in_both, only_bundled; print(in_both.origin, only_bundled.origin, customized)';
  const env = { ...process.env, ...pythonEnvironment(bundle, own) };
  assert.equal(execFileSync('python3', ['-c', print], { env, encoding: 'utf8' }), 'user bundle True\n');
  const alone = { ...process.env, ...pythonEnvironment(bundle, undefined) };
  assert.equal(
    execFileSync('python3', ['-c', 'import in_both; print(in_both.origin)'], {
      env: alone,
      encoding: 'utf8',
    }),
    'bundle\n',
  );
});

test('the folder of a run tells new lines of the log and the end, once', async () => {
  const storage = folder();
  const run = RunFolder.create(storage, 's1', '/nets/a.evolve.yaml');
  assert.equal(RunFolder.find(storage, 's1')?.net, '/nets/a.evolve.yaml');
  assert.equal(RunFolder.find(storage, 's2'), undefined);
  const seen: (string | number)[] = [];
  const waiting: { what: string | number; resolve: () => void }[] = [];
  const add = (what: string | number): void => {
    seen.push(what);
    waiting
      .filter((waiter) => waiter.what === what)
      .forEach(({ resolve }) => {
        resolve();
      });
  };
  const sees = (what: string | number): Promise<void> =>
    seen.includes(what) ? Promise.resolve() : new Promise((resolve) => waiting.push({ what, resolve }));
  writeFileSync(run.logFile, 'one\ntw');
  const stop = run.watch(add, add);
  appendFileSync(run.logFile, 'o\n');
  await sees('two');
  writeFileSync(run.exitFile, '3\n');
  await sees(3);
  appendFileSync(run.logFile, 'three\n');
  await sees('three');
  stop();
  assert.deepEqual(seen, ['one', 'two', 3, 'three']);
  assert.equal(run.exitCode(), 3);
});

test('folders of old runs are swept, those that still run are kept', () => {
  const storage = folder();
  RunFolder.sweep(storage, () => false, Date.now());
  const paths = ['old', 'running', 'fresh'].map((session) => RunFolder.create(storage, session, '/a').path);
  const now = Date.now();
  const twoDaysAgo = new Date(now - 2 * 24 * 3600 * 1000);
  paths.slice(0, 2).forEach((run) => {
    utimesSync(run, twoDaysAgo, twoDaysAgo);
  });
  RunFolder.sweep(storage, (session) => session === 'running', now);
  assert.deepEqual(
    paths.map((run) => existsSync(run)),
    [false, true, true],
  );
});

test('the folder of a run is private', () => {
  const run = RunFolder.create(folder(), 's', '/a');
  assert.equal(execFileSync('stat', ['-c', '%a', run.path], { encoding: 'utf8' }), '700\n');
  chmodSync(run.path, 0o700);
});
