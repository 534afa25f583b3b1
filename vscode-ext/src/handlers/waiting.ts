/** Waits for something that cannot be cancelled: a person, a command, a model. */

import type { Ctx } from '../ctx';

/** Interval of progress values. Well below the shortest default timeout, which each of them restarts. */
const SIGN_OF_LIFE_MS = 4_000;

/** Waits for `work`, but no longer than the caller does. After an abort, the reason of the abort is thrown. */
export async function whileWanted<T>(signal: AbortSignal, work: Thenable<T>): Promise<T> {
  signal.throwIfAborted();
  let abort: (() => void) | undefined;
  try {
    return await new Promise<T>((resolve, reject) => {
      abort = () => {
        reject(signal.reason as Error);
      };
      signal.addEventListener('abort', abort);
      work.then(resolve, reject);
    });
  } finally {
    if (abort) {
      signal.removeEventListener('abort', abort);
    }
  }
}

/**
 * Waits for a person as {@link whileWanted} does. A person may need longer than the default timeout, so progress values
 * keep restarting it. A timeout that the caller has chosen stays.
 */
export async function forPerson<T>(
  ctx: Pick<Ctx, 'signal' | 'progress'>,
  signOfLife: object,
  work: Thenable<T>,
): Promise<T> {
  const timer = setInterval(() => {
    ctx.progress(signOfLife);
  }, SIGN_OF_LIFE_MS);
  try {
    return await whileWanted(ctx.signal, work);
  } finally {
    clearInterval(timer);
  }
}
