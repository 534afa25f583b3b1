/**
 * An editor for the benchmark: opens a run in a real extension host, with the daemon that the argument names, and prints
 * the run's connection file as one line. Ends at the end of stdin.
 */

import { readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { finished } from 'node:stream/promises';

import { inExtensionHost } from './extensionHost';
import { workspace } from './nets';
import { within } from './server';
import { newHome } from './setup';

async function main(daemon: string | undefined): Promise<void> {
  const home = newHome();
  let tell: (session: string) => void = () => undefined;
  const opened = new Promise<string>((resolve) => (tell = resolve));
  const needs = {
    home,
    program: 'editor/benchmark.js',
    folder: workspace(path.join(home, 'workspace'), { 'waiting.evolve.yaml': '' }),
    settings: {
      'evolve.daemon.path': daemon,
      // The net waits in its terminal as long as the editor runs.
      'evolve.run.command': ['cat'],
      'evolve.chat.defaultModel': 'fake-parrot',
    },
    onPrint: ([what, value]: readonly unknown[]) => {
      if (what === 'session') {
        tell(String(value));
      }
    },
  };
  try {
    await inExtensionHost(needs, async ({ server, ended }) => {
      const failed = ended.then(() => Promise.reject(new Error('the run was not opened')));
      const session = await within(120_000, 'the run in the extension host', Promise.race([opened, failed]));
      const file = readFileSync(path.join(server.connectionFiles, `${session}.json`), 'utf8');
      console.log(JSON.stringify(JSON.parse(file)));
      await Promise.race([finished(process.stdin.resume()), failed]);
    });
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

main(process.argv[2]).then(
  () => {
    process.exit(0);
  },
  (error: unknown) => {
    console.error(error);
    process.exit(1);
  },
);
