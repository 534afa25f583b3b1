/** Waiting for something that cannot be called back: a person, a command, a model. */

import type { Ctx } from '../ctx';

/** Well below the shortest default deadline, which each sign of life starts anew. */
const SIGN_OF_LIFE_MS = 4_000;

/** Waits, but no longer than the caller does: then the reason of the abort is thrown. */
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
 * The same for a person, who may need longer than a default deadline: progress values keep the
 * request alive, unless the caller has named a limit of its own.
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
