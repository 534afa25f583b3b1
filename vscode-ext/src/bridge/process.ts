/** What the system says about a process. */

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

interface Stat {
  readonly parent: number;
  /** Clock ticks between boot and the start of the process: with the pid, a name never reused. */
  readonly start: number;
}

/** Whether this very process, not a later one with the same pid, is alive. */
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

/** A process tree is never as deep as this. */
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
  // The second field, the program's name, may hold spaces and brackets.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const dead = fields[0] === 'Z' || fields[0] === 'X';
  return dead ? undefined : { parent: Number(fields[1]), start: Number(fields[19]) };
}

function exists(pid: number): boolean {
  try {
    // Signal 0 only asks.
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
