import assert from 'node:assert/strict';

import * as vscode from 'vscode';

import { activeNet } from '../../src/runs/menu';

const NET = vscode.Uri.parse('slow:/orders.evolve.yaml');

/** A file system with one file of any name, whose content arrives when the test says so. */
class SlowFiles implements vscode.FileSystemProvider {
  readonly onDidChangeFile = new vscode.EventEmitter<vscode.FileChangeEvent[]>().event;
  readonly watch = (): vscode.Disposable => new vscode.Disposable(() => undefined);
  readonly stat = (): vscode.FileStat => ({ type: vscode.FileType.File, ctime: 0, mtime: 0, size: 5 });
  readonly readDirectory = (): [] => [];
  readonly createDirectory = (): void => undefined;
  readonly writeFile = (): void => undefined;
  readonly delete = (): void => undefined;
  readonly rename = (): void => undefined;

  constructor(private readonly loaded: Promise<unknown>) {}

  async readFile(): Promise<Uint8Array> {
    await this.loaded;
    return Buffer.from('net:\n');
  }
}

suite('the active net', () => {
  teardown(() => vscode.commands.executeCommand('workbench.action.closeAllEditors'));

  const activeTabHas = (fits: (input: unknown) => boolean): Promise<void> =>
    new Promise((resolve) => {
      const look = (): void => {
        if (fits(vscode.window.tabGroups.activeTabGroup.activeTab?.input)) {
          listener.dispose();
          resolve();
        }
      };
      const listener = vscode.window.tabGroups.onDidChangeTabs(look);
      look();
    });

  const textShown = (): string | undefined => vscode.window.activeTextEditor?.document.uri.toString();

  test('is known before its text is loaded', async () => {
    let load: () => void = () => undefined;
    const loaded = new Promise<void>((resolve) => (load = resolve));
    const registered = vscode.workspace.registerFileSystemProvider('slow', new SlowFiles(loaded));
    try {
      const opened = vscode.commands.executeCommand('vscode.open', NET);
      await activeTabHas((input) => input instanceof vscode.TabInputText);
      assert.equal(textShown(), undefined);
      assert.equal(activeNet()?.toString(), NET.toString());
      load();
      await opened;
      assert.equal(textShown(), NET.toString());
      assert.equal(activeNet()?.toString(), NET.toString());
    } finally {
      registered.dispose();
    }
  });

  test('is the newer side of a comparison', async () => {
    const older = vscode.Uri.parse('untitled:older.evolve.yaml');
    const newer = vscode.Uri.parse('untitled:newer.evolve.yaml');
    await vscode.commands.executeCommand('vscode.diff', older, newer);
    await activeTabHas((input) => input instanceof vscode.TabInputTextDiff);
    assert.equal(activeNet()?.toString(), newer.toString());
  });

  test('is nothing when the tab shows another file, or there is no tab', async () => {
    assert.equal(activeNet(), undefined);
    await vscode.window.showTextDocument(vscode.Uri.parse('untitled:orders.yaml'));
    await activeTabHas((input) => input instanceof vscode.TabInputText);
    assert.equal(activeNet(), undefined);
  });
});
