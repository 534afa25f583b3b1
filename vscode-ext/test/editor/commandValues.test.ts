import assert from 'node:assert/strict';

import * as vscode from 'vscode';

import { plain, revive } from '../../src/handlers/commandValues';

suite('values of commands', () => {
  test('arguments of known shapes become what commands expect', () => {
    const uri = revive({ $uri: 'file:///a%20b/c.py' });
    assert.ok(uri instanceof vscode.Uri);
    assert.equal(uri.fsPath, '/a b/c.py');
    const position = revive({ line: 3, character: 4 });
    assert.ok(position instanceof vscode.Position && position.line === 3 && position.character === 4);
    const range = revive({ start: { line: 1, character: 0 }, end: { line: 2, character: 5 } });
    assert.ok(range instanceof vscode.Range && range.end.character === 5);
    const location = revive({
      uri: { $uri: 'file:///x' },
      range: { start: { line: 0, character: 0 }, end: { line: 0, character: 1 } },
    });
    assert.ok(location instanceof vscode.Location && location.range.end.character === 1);
    const [nested] = revive([{ deep: { at: { line: 0, character: 0 } } }]) as { deep: { at: unknown } }[];
    assert.ok(nested?.deep.at instanceof vscode.Position);
  });

  test('everything else stays what it is', () => {
    const values = [
      ...['file:///a', 1, null, true, [], {}],
      ...[
        { line: 1 },
        { line: -1, character: 0 },
        { line: 1.5, character: 0 },
        { line: 1, character: 2, more: 3 },
      ],
      ...[
        { start: 1, end: 2 },
        { uri: 'x', range: 'y' },
        { scheme: 'file', path: '/a', other: 1 },
      ],
    ];
    assert.deepEqual(values.map(revive), values);
  });

  test('what a command returned can be an argument again', () => {
    const start = new vscode.Position(1, 2);
    const location = new vscode.Location(
      vscode.Uri.file('/a b/ü.py'),
      new vscode.Range(start, start.translate(1)),
    );
    const printed = JSON.parse(JSON.stringify(plain(location))) as unknown;
    const again = revive(printed) as vscode.Location;
    assert.ok(again instanceof vscode.Location);
    assert.equal(again.uri.toString(), location.uri.toString());
    assert.ok(again.range.isEqual(location.range));
  });

  test('results that JSON cannot hold are handled', () => {
    const cyclic: Record<string, unknown> = { name: 'loop' };
    cyclic['self'] = cyclic;
    let deep: unknown = 'bottom';
    for (let level = 0; level < 300; level++) {
      deep = [deep];
    }
    assert.equal(plain(undefined), undefined);
    assert.equal(
      plain(() => 1),
      undefined,
    );
    assert.deepEqual(plain(cyclic), { name: 'loop', self: '[circular]' });
    assert.match(JSON.stringify(plain(deep)), /\[too deep\]/);
    assert.deepEqual(
      plain({
        ...{ big: 12n, nan: NaN, when: new Date(0), bytes: new Uint8Array([1, 2]), fn: () => 1 },
        ...{ map: new Map([['a', 1]]), set: new Set([1, undefined]), error: new RangeError('no') },
      }),
      {
        ...{ big: '12', nan: null, when: '1970-01-01T00:00:00.000Z', bytes: 'AQI=', fn: undefined },
        ...{ map: { a: 1 }, set: [1, null], error: { name: 'RangeError', message: 'no' } },
      },
    );
    const broken = {
      get value(): unknown {
        throw new Error('cannot be read');
      },
    };
    assert.equal(plain(broken), '[unreadable]');
    assert.deepEqual(plain({ toJSON: () => ({ a: new vscode.Position(0, 1) }) }), {
      a: { line: 0, character: 1 },
    });
  });

  test('a result without end is an error', () => {
    const wide = Array.from({ length: 1_000 }, () => Array.from({ length: 1_000 }, () => 0));
    assert.throws(() => plain(wide), /more than 500000 values/);
  });
});
