/** Facts about processes from the operating system. */

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

interface Stat {
  readonly parent: number;
  /** Start of the process in clock ticks since boot. Pid and start together identify a process. */
  readonly start: number;
}

/** Whether the process with this pid and start is alive. A later process with the same pid does not count. */
export function isAlive(pid: number, start: number): boolean {
  return process.platform === 'linux' ? readStat(pid)?.start === start : exists(pid);
}

/** The parent of a living process. */
export function parentOf(pid: number): number | undefined {
  if (process.platform === 'linux') {
    return readStat(pid)?.parent;
  }
  try {
    return Number(execFileSync('ps', ['-o', 'ppid=', '-p', String(pid)], { encoding: 'utf8' }));
  } catch {
    return undefined;
  }
}

/** Limit for the depth of the process tree. */
const DEPTH = 64;

/** The process itself, its parent, and so on. */
export function ancestry(pid: number): number[] {
  const found = [pid];
  for (
    let parent = parentOf(pid);
    parent !== undefined && parent > 1 && found.length < DEPTH;
    parent = parentOf(parent)
  ) {
    found.push(parent);
  }
  return found;
}

function readStat(pid: number): Stat | undefined {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    return undefined;
  }
  // The second field, the program's name in parentheses, may itself contain spaces and parentheses.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const dead = fields[0] === 'Z' || fields[0] === 'X';
  return dead ? undefined : { parent: Number(fields[1]), start: Number(fields[19]) };
}

function exists(pid: number): boolean {
  try {
    // Signal 0 only checks whether the process exists.
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
