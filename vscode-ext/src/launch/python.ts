/** Chooses the Python that runs a net, and finds out what it can do. */

import { execFile, type ExecFileException } from 'node:child_process';

import { isObject } from '../bridge/protocol';

export interface PythonPlaces {
  /** The setting `evolve.python.path`; empty when unset. */
  readonly setting: string;
  /** The choice of the Python extension, if it is installed and has one. */
  readonly chosen: string | undefined;
  /** The variable PYTHON_PATH. */
  readonly variable: string | undefined;
}

export function choosePython({ setting, chosen, variable }: PythonPlaces): string {
  return [setting, chosen, variable].find((place) => place !== undefined && place !== '') ?? 'python3';
}

/** Facts about a Python. */
export interface PythonFacts {
  readonly version: readonly [number, number];
  /** Whether `enginepy.pnml_engine` can be imported. */
  readonly engine: boolean;
  /** Path of the debug adapter of `enginepy`, if it has one. */
  readonly adapter: string | null;
}

/** The oldest Python for which the bundled packages work. */
export const OLDEST_PYTHON = [3, 9] as const;

export function isTooOld([major, minor]: readonly [number, number]): boolean {
  return major < OLDEST_PYTHON[0] || (major === OLDEST_PYTHON[0] && minor < OLDEST_PYTHON[1]);
}

/** Timeout of the question. A Python on a slow disk may take seconds for its first start. */
const ASK_MS = 15_000;

const QUESTION = `
import importlib.util, json, sys
def find(name):
    try:
        return importlib.util.find_spec(name)
    except Exception:
        return None
adapter = find("enginepy.pnml_dap")
print(json.dumps({
    "version": sys.version_info[:2],
    "engine": find("enginepy.pnml_engine") is not None,
    "adapter": adapter.origin if adapter else None,
}))
`;

/** Asks a Python for its facts, in the directory in which the net will run. Rejects if it cannot be started. */
export function askPython(python: string, directory: string, env: NodeJS.ProcessEnv): Promise<PythonFacts> {
  return new Promise((resolve, reject) => {
    execFile(python, ['-c', QUESTION], { cwd: directory, env, timeout: ASK_MS }, (error, stdout) => {
      // The user's start-up code may print something before our line.
      const facts = error ? undefined : readFacts(stdout.trimEnd().split('\n').at(-1) ?? '');
      if (facts) {
        resolve(facts);
      } else {
        reject(new Error(error ? reason(error) : 'it did not answer as Python 3 does'));
      }
    });
  });
}

function readFacts(line: string): PythonFacts | undefined {
  try {
    const facts: unknown = JSON.parse(line);
    return isObject(facts) && Array.isArray(facts['version']) ? (facts as unknown as PythonFacts) : undefined;
  } catch {
    return undefined;
  }
}

function reason(error: ExecFileException): string {
  if (error.code === 'ENOENT') {
    return 'there is no such program';
  }
  if (error.killed === true) {
    return `it did not answer within ${ASK_MS / 1000} seconds`;
  }
  return error.message;
}
