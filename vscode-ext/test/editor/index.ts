/** Called by the extension host: runs the suites and writes their results to a file. */

import path from 'node:path';

import Mocha from 'mocha';

export async function run(): Promise<void> {
  const output = process.env['RUN_BRIDGE_TEST_RESULTS'];
  const mocha = new Mocha({ ui: 'tdd', timeout: 120_000, reporter: 'json', reporterOptions: { output } });
  for (const suite of ['activeNet', 'commandValues', 'host', 'runs']) {
    mocha.addFile(path.join(__dirname, `${suite}.test.js`));
  }
  const failures = await new Promise<number>((resolve) => mocha.run(resolve));
  if (failures > 0) {
    throw new Error(`${failures} test(s) failed`);
  }
}
