/** The environment of a run. */

import path from 'node:path';

/** Variables that the daemon sets for its run. A run without a bridge must not inherit those of another run. */
export const BRIDGE_VARIABLES = ['RUN_BRIDGE', 'EVOLVE_RUN_BRIDGE'].flatMap((family) =>
  ['ADDR', 'TOKEN', 'SESSION'].map((name) => `${family}_${name}`),
);

/**
 * Adds the bundled Python packages to the end of the run's module path, after everything that the user has installed.
 * PYTHONPATH itself comes before the user's packages, so it only gets a folder with a `sitecustomize` module, which
 * appends the bundled packages.
 */
export function pythonEnvironment(bundled: string, inherited: string | undefined): Record<string, string> {
  const own = path.join(bundled, 'path');
  const rest = (inherited ?? '').split(path.delimiter).filter((entry) => entry !== '' && entry !== own);
  return { PYTHONPATH: [own, ...rest].join(path.delimiter) };
}
