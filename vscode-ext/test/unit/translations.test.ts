import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

const extension = path.resolve(__dirname, '../..');
const read = (name: string): string => readFileSync(path.join(extension, name), 'utf8');
const texts = (name: string): Record<string, string> => JSON.parse(read(name)) as Record<string, string>;

const sorted = (names: Iterable<string>): string[] => [...new Set(names)].sort();

/** All texts of the manifest that a person reads, by their keys. */
function namesInManifest(): string[] {
  return sorted([...read('package.json').matchAll(/"%([^%"]+)%"/g)].map(([, name]) => name ?? ''));
}

/** All texts that the code passes to `l10n.t`. */
function textsInCode(): string[] {
  const files = readdirSync(path.join(extension, 'src'), { recursive: true, encoding: 'utf8' });
  const code = files.filter((name) => name.endsWith('.ts')).map((name) => read(path.join('src', name)));
  const calls = code.join('\n').match(/l10n\.t\(/g) ?? [];
  const found = [...code.join('\n').matchAll(/l10n\.t\(\s*'((?:[^'\\]|\\.)*)'/g)];
  assert.equal(found.length, calls.length, 'only texts in single quotes can be found and translated');
  return sorted(found.map(([, text]) => text ?? ''));
}

const placeholders = (text: string): string[] => sorted(text.match(/\{\d\}|\]\(command:[^)]*\)/g) ?? []);

test('the manifest has its texts in English and German', () => {
  assert.deepEqual(sorted(Object.keys(texts('package.nls.json'))), namesInManifest());
  assert.deepEqual(sorted(Object.keys(texts('package.nls.de.json'))), namesInManifest());
});

test('every text of the code has a German translation, and none is left over', () => {
  assert.deepEqual(sorted(Object.keys(texts('l10n/bundle.l10n.de.json'))), textsInCode());
});

test('translations fill in the same values and lead to the same commands', () => {
  const english = texts('package.nls.json');
  for (const [name, german] of Object.entries(texts('package.nls.de.json'))) {
    assert.deepEqual(placeholders(german), placeholders(english[name] ?? ''), name);
  }
  for (const [text, german] of Object.entries(texts('l10n/bundle.l10n.de.json'))) {
    assert.deepEqual(placeholders(german), placeholders(text), text);
  }
});

test('the pictures and pages of the walkthrough are in the package', () => {
  const { contributes } = JSON.parse(read('package.json')) as {
    contributes: { walkthroughs: { steps: { media: { image?: string; markdown?: string } }[] }[] };
  };
  const media = contributes.walkthroughs.flatMap(({ steps }) => steps.map((step) => step.media));
  assert.equal(media.length, 4);
  for (const { image, markdown } of media) {
    assert.ok(read(image ?? markdown ?? '').length > 0);
  }
});
