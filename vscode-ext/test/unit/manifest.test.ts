/** The manifest: where commands are offered, and who may change which setting. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { isNetFile } from '../../src/launch/net';

interface Manifest {
  readonly extensionKind: string[];
  readonly activationEvents: string[];
  readonly capabilities: {
    readonly untrustedWorkspaces: { readonly restrictedConfigurations: string[] };
  };
  readonly contributes: {
    readonly commands: { readonly command: string }[];
    readonly menus: Record<string, { readonly command: string; readonly when: string }[]>;
    readonly configuration: { readonly properties: Record<string, Setting> };
  };
}

interface Setting {
  readonly type?: string;
  readonly oneOf?: unknown[];
  readonly default: unknown;
  readonly scope: string;
  readonly markdownDescription: string;
}

const file = path.resolve(__dirname, '../../package.json');
const { contributes, capabilities, extensionKind, activationEvents } = JSON.parse(
  readFileSync(file, 'utf8'),
) as Manifest;

test('a net can be run from the title of its editor and from both context menus', () => {
  for (const menu of ['editor/title/run', 'editor/context', 'explorer/context']) {
    const entry = contributes.menus[menu]?.find(({ command }) => command === 'evolve.runNet');
    const pattern = /^resourceFilename =~ \/(.*)\/$/.exec(entry?.when ?? '')?.[1];
    assert.ok(pattern !== undefined, menu);
    for (const name of ['a.evolve.yaml', 'a.pnml.yaml', 'a.yaml', 'evolve.yaml', 'a.evolve.yaml.bak']) {
      assert.equal(new RegExp(pattern).test(name), isNetFile(name), `${name} in ${menu}`);
    }
  }
  // Without an entry that hides it, a command is in the palette.
  assert.equal(contributes.menus['commandPalette'], undefined);
});

test('settings are typed and described, and each has its scope', () => {
  const settings = Object.entries(contributes.configuration.properties);
  assert.deepEqual(
    settings.map(([name, setting]) => [name, setting.default, setting.scope]),
    [
      ['evolve.runBridge.enabled', true, 'resource'],
      ['evolve.runBridge.port', 0, 'resource'],
      // The daemon talks to the window, so no workspace may choose it.
      ['evolve.daemon.path', '', 'machine'],
      ['evolve.python.path', '', 'machine-overridable'],
      ['evolve.run.command', [], 'machine-overridable'],
      ['evolve.chat.defaultModel', '', 'resource'],
      ['evolve.commands.policy', 'allow', 'window'],
    ],
  );
  for (const [name, { type, oneOf, markdownDescription }] of settings) {
    assert.ok(type ?? oneOf, name);
    assert.ok(markdownDescription, name);
  }
});

test('a workspace that is not trusted chooses no program and no policy', () => {
  assert.deepEqual(capabilities.untrustedWorkspaces.restrictedConfigurations, [
    'evolve.daemon.path',
    'evolve.python.path',
    'evolve.run.command',
    'evolve.commands.policy',
  ]);
});

test('the extension runs beside Python, and only when it is needed', () => {
  assert.deepEqual(extensionKind, ['workspace']);
  assert.ok(activationEvents.every((event) => !['*', 'onStartupFinished'].includes(event)));
});
