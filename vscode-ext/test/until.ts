import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';

/** Waits for the end of processes: the system tells it to nobody but a parent, so this has to look. */
export async function until(what: string, done: () => boolean): Promise<void> {
  for (const end = Date.now() + 30_000; !done();) {
    assert.ok(Date.now() < end, `waited 30 seconds for ${what}`);
    await sleep(20);
  }
}
