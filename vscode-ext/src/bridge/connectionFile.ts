/**
 * The private files by which a window finds a daemon, as PROTOCOL.md section 1 describes them.
 *
 * A file counts only if it is a regular file of this user that nobody else can read, and its process is alive. The
 * extension only reads: daemons write and remove their files themselves.
 */

import {
  constants,
  closeSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  watch,
} from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { isAlive } from './process';
import { isObject } from './protocol';
import type { Endpoint } from './webSocketTransport';

const SCHEMA = 1;

/** A larger file is not a connection file. */
const FILE_BYTES = 64 * 1024;

const SESSION = /^[A-Za-z0-9_-]{1,64}$/;

/** The members of `{session}.json` that a window needs. */
export interface ConnectionFile {
  readonly session: string;
  readonly pid: number;
  readonly processStart: number;
  readonly addr: string;
  readonly directory: string;
  /** The program that runs, without its arguments. */
  readonly program?: string;
  readonly wantsEditor: boolean;
  /** Milliseconds since 1970. */
  readonly startedAt: number;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** The directory of this user's connection files. */
export function locateDirectory(env: Environment): string {
  const absolute = (name: string): string | undefined => {
    const value = env[name];
    return value !== undefined && path.isAbsolute(value) ? value : undefined;
  };
  // Under `su` or `sudo` the variable may still name the other user's directory.
  const runtime = absolute('XDG_RUNTIME_DIR');
  const base =
    (runtime !== undefined && isOwnDirectory(runtime) ? runtime : undefined) ??
    absolute('XDG_STATE_HOME') ??
    path.join(absolute('HOME') ?? os.homedir(), '.local/state');
  return path.join(base, 'run-bridge');
}

/** The connection file of a session, if its daemon is alive. */
export function readConnectionFile(directory: string, session: string): ConnectionFile | undefined {
  const content = readFile(directory, session, `${session}.json`);
  const known =
    typeof content?.['addr'] === 'string' &&
    typeof content['directory'] === 'string' &&
    typeof content['wantsEditor'] === 'boolean' &&
    typeof content['startedAt'] === 'number';
  return known ? (content as unknown as ConnectionFile) : undefined;
}

/** The daemons of this user that are alive, newest first. */
export function listConnectionFiles(directory: string): ConnectionFile[] {
  let names: string[];
  try {
    names = readdirSync(directory);
  } catch {
    return [];
  }
  return names
    .filter((name) => name.endsWith('.json') && !name.endsWith('.host.json'))
    .map((name) => readConnectionFile(directory, name.slice(0, -'.json'.length)))
    .filter((file) => file !== undefined)
    .sort((a, b) => b.startedAt - a.startedAt);
}

/** The address and host token of a session, if its daemon is alive. */
export function readEndpoint(directory: string, session: string): Endpoint | undefined {
  const file = readConnectionFile(directory, session);
  const hostToken = readFile(directory, session, `${session}.host.json`)?.['hostToken'];
  return file && typeof hostToken === 'string' ? { addr: file.addr, session, hostToken } : undefined;
}

/**
 * Waits until the daemon of a session has published its file. The file appears complete or not at all, so it can be
 * read as soon as it exists. Rejects when the signal aborts, with the signal's reason.
 */
export async function awaitConnectionFile(
  directory: string,
  session: string,
  signal: AbortSignal,
): Promise<ConnectionFile> {
  signal.throwIfAborted();
  // The daemon also creates the directory, but it must exist now to be watched.
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  return new Promise((resolve, reject) => {
    const look = (): void => {
      const file = readConnectionFile(directory, session);
      if (file) {
        stop();
        resolve(file);
      }
    };
    const abort = (): void => {
      stop();
      reject(signal.reason as Error);
    };
    const unwatch = onChange(directory, look);
    const stop = (): void => {
      unwatch();
      signal.removeEventListener('abort', abort);
    };
    signal.addEventListener('abort', abort);
    // The file may have existed before the watch began.
    look();
  });
}

/** Interval of polling where the directory cannot be watched. */
const LOOK_MS = 250;

/** Calls `look` after each change of a directory. Returns a function that stops watching. */
export function onChange(directory: string, look: () => void): () => void {
  let timer: NodeJS.Timeout | undefined;
  const lookNowAndThen = (): void => {
    timer ??= setInterval(look, LOOK_MS);
  };
  try {
    const watcher = watch(directory, look);
    watcher.on('error', lookNowAndThen);
    return () => {
      watcher.close();
      clearInterval(timer);
    };
  } catch {
    // Linux limits the number of watches per user, and the limit may be reached.
    lookNowAndThen();
    return () => {
      clearInterval(timer);
    };
  }
}

/** Reads one file if it can be trusted and belongs to a living daemon of this session. */
function readFile(directory: string, session: string, name: string): Record<string, unknown> | undefined {
  if (!SESSION.test(session) || !isPrivateDirectory(directory)) {
    return undefined;
  }
  const content = readPrivateFile(path.join(directory, name));
  const valid =
    content?.['schema'] === SCHEMA &&
    content['session'] === session &&
    typeof content['pid'] === 'number' &&
    typeof content['processStart'] === 'number' &&
    isAlive(content['pid'], content['processStart']);
  return valid ? content : undefined;
}

function readPrivateFile(file: string): Record<string, unknown> | undefined {
  let handle: number | undefined;
  try {
    handle = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const stat = fstatSync(handle);
    if (
      !stat.isFile() ||
      stat.uid !== process.geteuid?.() ||
      (stat.mode & 0o077) !== 0 ||
      stat.size > FILE_BYTES
    ) {
      return undefined;
    }
    const content: unknown = JSON.parse(readFileSync(handle, 'utf8'));
    return isObject(content) ? content : undefined;
  } catch {
    // The file has been removed in the meantime, or is not a connection file.
    return undefined;
  } finally {
    if (handle !== undefined) {
      closeSync(handle);
    }
  }
}

function isPrivateDirectory(directory: string): boolean {
  return isOwnDirectory(directory) && (lstatSync(directory).mode & 0o077) === 0;
}

function isOwnDirectory(directory: string): boolean {
  const stat = lstatSync(directory, { throwIfNoEntry: false });
  return stat !== undefined && stat.isDirectory() && stat.uid === process.geteuid?.();
}
