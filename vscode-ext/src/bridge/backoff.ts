/** How long to wait before the next attempt to connect. */

const FIRST_MS = 100;
const LAST_MS = 5_000;

/**
 * Doubles with each attempt (counted from 0) up to a maximum. The random part, `0 <= random < 1`, keeps windows that
 * have lost the same daemon from reconnecting at the same time.
 */
export function backoff(attempt: number, random: number): number {
  const whole = Math.min(LAST_MS, FIRST_MS * 2 ** Math.min(attempt, 16));
  return whole * (0.5 + random / 2);
}
