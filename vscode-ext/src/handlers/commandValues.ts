/**
 * Converts arguments and results of editor commands between JSON and objects of the editor.
 *
 * Commands expect real URIs, positions and ranges. Arguments of exactly these shapes are converted:
 * `{"$uri": "file:///…"}` or a URI as this module prints it, `{line, character}`, `{start, end}`,
 * `{uri, range}`. Everything else stays unchanged; in particular, strings stay strings.
 */

import * as vscode from 'vscode';

import { BridgeError } from '../bridge/errors';
import { isObject } from '../bridge/protocol';

const URI_MEMBERS = [
  '$mid',
  'scheme',
  'authority',
  'path',
  'query',
  'fragment',
  'fsPath',
  'external',
  '_sep',
];

/** Maximum depth of results. Deeper ones are cut, because the daemon accepts 128 levels, including the envelope. */
const DEPTH = 100;

/** Maximum number of values in a result. A larger result is an error. */
const VALUES = 500_000;

/** Converts an argument from JSON into what commands expect. */
export function revive(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.map(revive);
  }
  if (!isObject(value)) {
    return value;
  }
  const names = Object.keys(value);
  if (isShape(names, ['$uri']) && typeof value['$uri'] === 'string') {
    return vscode.Uri.parse(value['$uri'], true);
  }
  if (
    typeof value['scheme'] === 'string' &&
    typeof value['path'] === 'string' &&
    names.every((name) => URI_MEMBERS.includes(name))
  ) {
    return vscode.Uri.from(value as unknown as Parameters<typeof vscode.Uri.from>[0]);
  }
  if (isShape(names, ['line', 'character']) && isIndex(value['line']) && isIndex(value['character'])) {
    return new vscode.Position(value['line'], value['character']);
  }
  const revived = Object.fromEntries(names.map((name) => [name, revive(value[name])]));
  if (
    isShape(names, ['start', 'end']) &&
    revived['start'] instanceof vscode.Position &&
    revived['end'] instanceof vscode.Position
  ) {
    return new vscode.Range(revived['start'], revived['end']);
  }
  if (
    isShape(names, ['uri', 'range']) &&
    revived['uri'] instanceof vscode.Uri &&
    revived['range'] instanceof vscode.Range
  ) {
    return new vscode.Location(revived['uri'], revived['range']);
  }
  return revived;
}

/**
 * Converts the return value of a command into plain JSON values. Functions and symbols are left out. A value that
 * contains itself, is too deep or cannot be read is replaced by a text that says so. Throws only if there are too many
 * values.
 */
export function plain(value: unknown): unknown {
  let values = 0;
  const within: unknown[] = [];

  const convert = (item: unknown): unknown => {
    if (++values > VALUES) {
      throw new BridgeError(
        'OversizedResponse',
        `The command returned more than ${VALUES} values: ask for less.`,
      );
    }
    switch (typeof item) {
      case 'string':
      case 'boolean':
        return item;
      case 'number':
        return Number.isFinite(item) ? item : null;
      case 'bigint':
        return item.toString();
      case 'undefined':
      case 'function':
      case 'symbol':
        return undefined;
      case 'object':
        return item === null ? null : convertObject(item);
    }
  };

  const convertObject = (item: object): unknown => {
    const known = convertKnown(item);
    if (known !== undefined) {
      return known;
    }
    if (within.includes(item)) {
      return '[circular]';
    }
    if (within.length >= DEPTH) {
      return '[too deep]';
    }
    within.push(item);
    try {
      return convertMembers(item);
    } catch (error) {
      if (error instanceof BridgeError) {
        throw error;
      }
      return '[unreadable]';
    } finally {
      within.pop();
    }
  };

  const convertMembers = (item: object): unknown => {
    if (Array.isArray(item) || item instanceof Set) {
      return [...(item as Iterable<unknown>)].map((member) => convert(member) ?? null);
    }
    if (item instanceof Map) {
      return Object.fromEntries([...item].map(([name, member]) => [String(name), convert(member)]));
    }
    if (item instanceof vscode.Position) {
      return { line: item.line, character: item.character };
    }
    if (item instanceof vscode.Range) {
      return { start: convert(item.start), end: convert(item.end) };
    }
    const own = 'toJSON' in item ? (item as { toJSON: () => unknown }).toJSON() : item;
    if (own !== item) {
      return convert(own);
    }
    return Object.fromEntries(Object.entries(item).map(([name, member]) => [name, convert(member)]));
  };

  return convert(value);
}

function convertKnown(item: object): unknown {
  if (item instanceof vscode.Uri) {
    const { scheme, authority, path, query, fragment, fsPath } = item;
    return { scheme, authority, path, query, fragment, fsPath, external: item.toString() };
  }
  if (item instanceof Date) {
    return Number.isNaN(item.getTime()) ? null : item.toISOString();
  }
  if (item instanceof Error) {
    return { name: item.name, message: item.message };
  }
  if (item instanceof ArrayBuffer) {
    return Buffer.from(item).toString('base64');
  }
  if (ArrayBuffer.isView(item)) {
    return Buffer.from(item.buffer, item.byteOffset, item.byteLength).toString('base64');
  }
  return undefined;
}

function isShape(names: readonly string[], wanted: readonly string[]): boolean {
  return names.length === wanted.length && wanted.every((name) => names.includes(name));
}

function isIndex(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0;
}
