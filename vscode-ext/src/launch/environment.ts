/** The environment of a run. */

import path from 'node:path';

/** Set by the daemon for its run. A run without a bridge must not inherit those of another one. */
export const BRIDGE_VARIABLES = ['RUN_BRIDGE', 'EVOLVE_RUN_BRIDGE'].flatMap((family) =>
  ['ADDR', 'TOKEN', 'SESSION'].map((name) => `${family}_${name}`),
);

/**
 * Puts the bundled Python packages on the run's module path, behind everything that the user has
 * installed. The folder that goes to PYTHONPATH holds a `sitecustomize` module only, which adds
 * the packages at the very end; PYTHONPATH itself would come before the user's own packages.
 */
export function pythonEnvironment(bundled: string, inherited: string | undefined): Record<string, string> {
  const own = path.join(bundled, 'path');
  const rest = (inherited ?? '').split(path.delimiter).filter((entry) => entry !== '' && entry !== own);
  return { PYTHONPATH: [own, ...rest].join(path.delimiter) };
}
