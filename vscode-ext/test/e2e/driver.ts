/** Runs the suites of `test/editor` inside a real extension host and prints what became of them. */

import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';

import { Server, within } from './server';
import { extensionsFolder, newHome } from './setup';
import { launchBrowser } from './window';

interface Results {
  readonly stats: { readonly passes: number; readonly failures: number };
  readonly tests: readonly {
    readonly fullTitle: string;
    readonly err: { readonly stack?: string; readonly message?: string };
  }[];
}

const extension = path.resolve(__dirname, '../..');

async function main(): Promise<number> {
  const home = newHome();
  const results = path.join(home, 'results.json');
  const folder = path.join(home, 'workspace');
  mkdirSync(folder);
  const server = await Server.start({
    home,
    // The product is taken from its source folder.
    extensions: extensionsFolder(['fake-lm'], home),
    // Without this flag the page ignores what it is told to run.
    flags: ['--vscode-option', 'enable-smoke-test-driver'],
    environment: { RUN_BRIDGE_TEST_RESULTS: results },
  });
  const browser = await launchBrowser();
  try {
    const page = await browser.newPage();
    const ended = new Promise<void>((resolve, reject) => {
      page.on('crash', () => {
        reject(new Error('the page crashed'));
      });
      page
        .exposeFunction('codeAutomationExit', () => {
          resolve();
        })
        .catch(reject);
    });
    await page.exposeFunction('codeAutomationLog', () => undefined);
    const remote = (file: string): string => `vscode-remote://${server.authority}${file}`;
    const payload = [
      ['extensionDevelopmentPath', remote(extension)],
      ['extensionTestsPath', remote(path.join(extension, 'out/editor/index.js'))],
    ];
    const query = new URLSearchParams({ folder, payload: JSON.stringify(payload) });
    await page.goto(`${server.url}?${query.toString()}`);
    await within(240_000, 'the suites in the extension host', ended);
    return report(JSON.parse(readFileSync(results, 'utf8')) as Results);
  } finally {
    await browser.close();
    await server.stop();
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
