/**
 * The folder of one run in the extension's storage. It survives a reload of the window, so that the reloaded window
 * knows which net runs, and continues to read the daemon's log.
 */

import {
  closeSync,
  existsSync,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';

import { onChange } from '../bridge/connectionFile';

/** How long the folder of a run is kept after its end, in case somebody wants to read the log. */
const KEPT_MS = 24 * 60 * 60 * 1000;

export class RunFolder {
  private constructor(readonly path: string) {}

  static create(storage: string, session: string, net: string): RunFolder {
    const folder = RunFolder.of(storage, session);
    mkdirSync(folder.path, { recursive: true, mode: 0o700 });
    writeFileSync(path.join(folder.path, 'net'), net);
    return folder;
  }

  /** The folder of a run that another window, or this one before its reload, has created. */
  static find(storage: string, session: string): RunFolder | undefined {
    const folder = RunFolder.of(storage, session);
    return existsSync(folder.path) ? folder : undefined;
  }

  /** Removes folders of runs that ended long ago. */
  static sweep(storage: string, isRunning: (session: string) => boolean, now: number): void {
    const base = path.join(storage, 'runs');
    const sessions = existsSync(base) ? readdirSync(base) : [];
    for (const session of sessions.filter((name) => !isRunning(name))) {
      const folder = path.join(base, session);
      // Another window may sweep at the same time.
      const changed = statSync(folder, { throwIfNoEntry: false })?.mtimeMs ?? now;
      if (now - changed > KEPT_MS) {
        rmSync(folder, { recursive: true, force: true });
      }
    }
  }

  private static of(storage: string, session: string): RunFolder {
    return new RunFolder(path.join(storage, 'runs', session));
  }

  /** The net that runs. */
  get net(): string {
    return readFileSync(path.join(this.path, 'net'), 'utf8');
  }

  get logFile(): string {
    return path.join(this.path, 'daemon.log');
  }

  get exitFile(): string {
    return path.join(this.path, 'exit');
  }

  /** How the run ended, if it has. */
  exitCode(): number | undefined {
    try {
      return Number.parseInt(readFileSync(this.exitFile, 'utf8'), 10);
    } catch {
      return undefined;
    }
  }

  /** Reports each new line of the log, and the end of the run once. Returns a function that stops this. */
  watch(onLine: (line: string) => void, onExit: (code: number) => void): () => void {
    const log = new GrowingFile(this.logFile);
    let exited = false;
    const look = (): void => {
      log.readLines(onLine);
      const code = exited ? undefined : this.exitCode();
      if (code !== undefined) {
        exited = true;
        onExit(code);
      }
    };
    const stop = onChange(this.path, look);
    look();
    return stop;
  }
}

/** Reads the lines that were added to a file since the last time. */
class GrowingFile {
  private position = 0;
  private unfinished = '';

  constructor(private readonly file: string) {}

  readLines(onLine: (line: string) => void): void {
    const lines = (this.unfinished + this.readRest()).split('\n');
    this.unfinished = lines.pop() ?? '';
    lines.forEach(onLine);
  }

  private readRest(): string {
    let handle: number;
    try {
      handle = openSync(this.file, 'r');
    } catch {
      return '';
    }
    try {
      const rest = Buffer.alloc(Math.max(0, fstatSync(handle).size - this.position));
      const length = readSync(handle, rest, 0, rest.length, this.position);
      this.position += length;
      return rest.toString('utf8', 0, length);
    } finally {
      closeSync(handle);
    }
  }
}
