import assert from 'node:assert/strict';
import { test } from 'node:test';

import { backoff } from '../../src/bridge/backoff';
import { HostLink, type LinkOptions, type LinkState } from '../../src/bridge/hostLink';
import { RefusedError, type Transport } from '../../src/bridge/transport';
import { memoryLog, MemoryTransport } from './memoryTransport';

const ENDPOINT = { addr: 'ws://127.0.0.1:1/', session: 's', hostToken: 'secret' };

/** A link whose transports the test makes, and whose states can be awaited. */
function startLink(options: Partial<LinkOptions> = {}) {
  const transports: MemoryTransport[] = [];
  const states: LinkState[] = [];
  const waiting: (() => void)[] = [];
  const changed = (): void => {
    waiting.splice(0).forEach((check) => {
      check();
    });
  };
  const log = memoryLog();
  const link = new HostLink({
    runtimeId: 'vscode-s',
    registration: () => ({
      title: 'Orders',
      workspaceFolders: ['/orders'],
      methods: ['vscode/chat'],
      focused: true,
    }),
    locate: () => ENDPOINT,
    connect: () => {
      const transport = new MemoryTransport();
      transports.push(transport);
      changed();
      return Promise.resolve<Transport>(transport);
    },
    dispatch: () => Promise.resolve({}),
    log,
    onState: (state) => {
      states.push(state);
      changed();
    },
    ...options,
  });
  const until = (what: string, done: () => boolean): Promise<void> =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(new Error(`waited for ${what}; states: ${JSON.stringify(states)}`));
      }, 5_000);
      const check = (): void => {
        if (done()) {
          clearTimeout(timer);
          resolve();
        } else {
          waiting.push(check);
        }
      };
      check();
    });
  const transport = async (index: number): Promise<MemoryTransport> => {
    await until(`connection ${index}`, () => transports.length > index);
    const opened = transports[index];
    assert.ok(opened);
    return opened;
  };
  const attached = async (index: number): Promise<MemoryTransport> => {
    const opened = await transport(index);
    await opened.answer('bridge/hello', { result: {} });
    await opened.answer('runtime/register', { result: { runtimeId: 'vscode-s' } });
    await until('attached', () => link.state.kind === 'attached');
    return opened;
  };
  const end = async (): Promise<unknown> => {
    await until('the end', () => link.state.kind === 'ended');
    return link.state.kind === 'ended' ? link.state.end : undefined;
  };
  return { link, log, states, transports, transport, attached, end };
}

test('a link says hello and registers what the window is', async () => {
  const { link, attached, end } = startLink();
  const transport = await attached(0);
  assert.deepEqual(transport.sent[0]?.params?.['protocol'], 1);
  assert.deepEqual(transport.sent[1]?.params, {
    runtimeId: 'vscode-s',
    title: 'Orders',
    workspaceFolders: ['/orders'],
    methods: ['vscode/chat'],
    focused: true,
  });
  await link.detach();
  assert.deepEqual(await end(), { kind: 'detached' });
});

test('a lost connection is made again under the same runtime id', async () => {
  const { link, attached, states } = startLink();
  (await attached(0)).end(1006);
  const second = await attached(1);
  assert.equal(second.sent[1]?.params?.['runtimeId'], 'vscode-s');
  assert.deepEqual(
    states.map(({ kind }) => kind),
    ['attached', 'connecting', 'attached'],
  );
  await link.detach();
});

test('a daemon that says goodbye is not sought again', async () => {
  const { attached, end, transports } = startLink();
  (await attached(0)).end(1001);
  assert.deepEqual(await end(), { kind: 'daemonEnded' });
  assert.equal(transports.length, 1);
});

test('a window that was replaced does not fight for its place', async () => {
  const { attached, end, transports } = startLink();
  (await attached(0)).end(4409);
  assert.deepEqual(await end(), { kind: 'replaced' });
  assert.equal(transports.length, 1);
});

test('a daemon that is no longer there ends the link', async () => {
  let running = true;
  const { attached, end } = startLink({ locate: () => (running ? ENDPOINT : undefined) });
  const transport = await attached(0);
  running = false;
  transport.end(1006);
  assert.deepEqual(await end(), { kind: 'daemonGone' });
});

test('a refusal that will not change ends the link, another is tried again', async () => {
  const statuses = [503, 401];
  let attempts = 0;
  const { end } = startLink({
    connect: () => Promise.reject(new RefusedError(statuses[attempts++] ?? 0)),
  });
  assert.deepEqual(await end(), {
    kind: 'refused',
    message: 'the bridge refused the connection with HTTP status 401',
  });
  assert.equal(attempts, 2);
});

test('another version of the protocol ends the link', async () => {
  const { transport, end } = startLink();
  const first = await transport(0);
  await first.answer('bridge/hello', { error: { code: -32057, message: 'this daemon speaks version 2' } });
  assert.deepEqual(await end(), { kind: 'refused', message: 'this daemon speaks version 2' });
});

test('a link can be left while it waits for its next attempt', async () => {
  const { link, attached, end } = startLink({ log: memoryLog() });
  (await attached(0)).end(1006);
  await link.detach();
  assert.deepEqual(await end(), { kind: 'detached' });
});

test('changes are told only while somebody listens', async () => {
  const { link, attached } = startLink();
  await link.update({ focused: false });
  const transport = await attached(0);
  const told = link.update({ focused: false });
  const update = await transport.answer('runtime/update', { result: {} });
  await told;
  assert.deepEqual(update.params, { focused: false });
  await link.detach();
  assert.equal(transport.sent.filter(({ method }) => method === 'runtime/update').length, 1);
});

test('the token does not reach the log', async () => {
  const { link, log, attached } = startLink();
  (await attached(0)).end(1006);
  await attached(1);
  await link.detach();
  assert.ok(log.lines.length > 0);
  assert.doesNotMatch(log.lines.join('\n'), /secret/);
});

test('pauses double up to a ceiling and differ between windows', () => {
  assert.deepEqual(
    [0, 1, 2, 3].map((attempt) => backoff(attempt, 0)),
    [50, 100, 200, 400],
  );
  assert.equal(backoff(0, 0.5), 75);
  assert.ok(backoff(1_000_000, 0.999) <= 5_000);
});
