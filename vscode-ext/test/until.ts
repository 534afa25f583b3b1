import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';

/** Machines that run tests are slow. */
const LIMIT_SECONDS = 120;

/** Waits for the end of processes: the system tells it to nobody but a parent, so this has to look. */
export async function until(what: string, done: () => boolean): Promise<void> {
  for (const end = Date.now() + LIMIT_SECONDS * 1000; !done();) {
    assert.ok(Date.now() < end, `waited ${LIMIT_SECONDS} seconds for ${what}`);
    await sleep(20);
  }
}
