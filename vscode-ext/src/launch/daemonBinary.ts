/** Finds the `bridge-daemon` to start: the one in the setting, else the bundled one, else the one on PATH. */

import { accessSync, chmodSync, constants, statSync } from 'node:fs';
import path from 'node:path';

const NAME = 'bridge-daemon';

export interface DaemonPlaces {
  /** The setting `evolve.daemon.path`; empty when unset. */
  readonly setting: string;
  /** The extension's folder of bundled programs. */
  readonly bundled: string;
  /** The variable PATH. */
  readonly path: string | undefined;
}

export type FoundDaemon =
  | { readonly kind: 'found'; readonly path: string }
  /** The setting names something that cannot be run. This is reported, and no other one is used. */
  | { readonly kind: 'settingWrong'; readonly path: string }
  | { readonly kind: 'missing' };

export function findDaemon(places: DaemonPlaces): FoundDaemon {
  if (places.setting !== '') {
    return isProgram(places.setting)
      ? { kind: 'found', path: places.setting }
      : { kind: 'settingWrong', path: places.setting };
  }
  const bundled = path.join(places.bundled, NAME);
  makeExecutable(bundled);
  const onPath = (places.path ?? '').split(path.delimiter).filter((entry) => path.isAbsolute(entry));
  const found = [bundled, ...onPath.map((entry) => path.join(entry, NAME))].find(isProgram);
  return found === undefined ? { kind: 'missing' } : { kind: 'found', path: found };
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

/** Makes a bundled program executable, because some tools that unpack a VSIX lose the mode of its files. */
function makeExecutable(file: string): void {
  try {
    accessSync(file, constants.F_OK);
    accessSync(file, constants.X_OK);
  } catch {
    try {
      chmodSync(file, 0o755);
    } catch {
      // The file does not exist, or its mode cannot be changed: `isProgram` decides.
    }
  }
}
