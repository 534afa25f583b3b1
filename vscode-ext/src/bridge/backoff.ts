/** How long to wait before the next attempt to connect. */

const FIRST_MS = 100;
const LAST_MS = 5_000;

/**
 * Doubles with each attempt (counted from 0) up to a ceiling. The random part, `0 <= random < 1`,
 * keeps windows that lost the same daemon from coming back in step.
 */
export function backoff(attempt: number, random: number): number {
  const whole = Math.min(LAST_MS, FIRST_MS * 2 ** Math.min(attempt, 16));
  return whole * (0.5 + random / 2);
}
