import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';

/** Timeout of a wait. It is long, because machines that run tests are slow. */
const LIMIT_SECONDS = 120;

/** Waits for the end of processes. It has to poll, because only a parent is notified of the end of a process. */
export async function until(what: string, done: () => boolean): Promise<void> {
  for (const end = Date.now() + LIMIT_SECONDS * 1000; !done();) {
    assert.ok(Date.now() < end, `waited ${LIMIT_SECONDS} seconds for ${what}`);
    await sleep(20);
  }
}
