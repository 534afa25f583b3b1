// Bundles the extension into dist/extension.js. With --tests also each test file, and the programs of the
// tests and the benchmark, into out/.
import { build } from 'esbuild';
import { readdirSync, rmSync } from 'node:fs';
import path from 'node:path';

const common = {
  bundle: true,
  platform: 'node',
  target: 'node20',
  sourcemap: true,
  logLevel: 'warning',
};

/** Programs that are started by name, beside the tests. */
const PROGRAMS = ['index.ts', 'driver.ts', 'benchmark.ts'];

rmSync('dist', { recursive: true, force: true });
await build({
  ...common,
  entryPoints: ['src/extension.ts'],
  outfile: 'dist/extension.js',
  format: 'cjs',
  external: ['vscode'],
});

if (process.argv.includes('--tests')) {
  rmSync('out', { recursive: true, force: true });
  const entryPoints = ['unit', 'editor', 'e2e'].flatMap((ring) =>
    readdirSync(path.join('test', ring))
      .filter((name) => name.endsWith('.test.ts') || PROGRAMS.includes(name))
      .map((name) => path.join('test', ring, name)),
  );
  await build({
    ...common,
    entryPoints,
    outdir: 'out',
    outbase: 'test',
    format: 'cjs',
    // Not bundled: Mocha finds its own parts by path, Playwright is large, and the editor provides vscode.
    external: ['vscode', 'mocha', 'playwright-core'],
  });
}
