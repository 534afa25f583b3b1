/** Runs the suites of `test/editor` inside a real extension host and prints their results. */

import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';

import { inExtensionHost } from './extensionHost';
import { within } from './server';
import { newHome } from './setup';

interface Results {
  readonly stats: { readonly passes: number; readonly failures: number };
  readonly tests: readonly {
    readonly fullTitle: string;
    readonly err: { readonly stack?: string; readonly message?: string };
  }[];
}

async function main(): Promise<number> {
  const home = newHome();
  const results = path.join(home, 'results.json');
  const folder = path.join(home, 'workspace');
  mkdirSync(folder);
  const environment = { RUN_BRIDGE_TEST_RESULTS: results };
  try {
    return await inExtensionHost(
      { home, folder, environment, program: 'editor/index.js' },
      async ({ ended }) => {
        await within(600_000, 'the suites in the extension host', ended);
        return report(JSON.parse(readFileSync(results, 'utf8')) as Results);
      },
    );
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

function report({ stats, tests }: Results): number {
  for (const { fullTitle, err } of tests) {
    const failed = err.message !== undefined;
    console.log(`${failed ? 'not ok' : 'ok'} - ${fullTitle}`);
    if (failed) {
      console.log(`    ${(err.stack ?? err.message).replaceAll('\n', '\n    ')}`);
    }
  }
  console.log(`# pass ${stats.passes}\n# fail ${stats.failures}`);
  return stats.failures;
}

main().then(
  (failures) => {
    process.exit(failures === 0 ? 0 : 1);
  },
  (error: unknown) => {
    console.error(error);
    process.exit(1);
  },
);
