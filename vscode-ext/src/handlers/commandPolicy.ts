/** Whether a run may execute a command of the editor. */

import { isObject } from '../bridge/protocol';

/** From loose to strict. */
const DECISIONS = ['allow', 'ask', 'deny'] as const;

export type Decision = (typeof DECISIONS)[number];

/** One value of the setting `evolve.commands.policy`: for all commands, or by patterns. */
export type Policy = Decision | Readonly<Record<string, Decision>>;

/** The values of the setting. What is not set is `undefined`. */
export interface PolicyLayers {
  /** The user's own, which a workspace can tighten but never loosen. */
  readonly user: unknown;
  readonly workspace: readonly unknown[];
  readonly trusted: boolean;
}

export function decide(command: string, layers: PolicyLayers): Decision {
  if (!layers.trusted) {
    return 'deny';
  }
  const decisions = [layers.user ?? 'allow', ...layers.workspace.filter((value) => value !== undefined)].map(
    (value) => DECISIONS.indexOf(isPolicy(value) ? decideBy(value, command) : 'ask'),
  );
  return DECISIONS[Math.max(...decisions)] ?? 'deny';
}

/** The first pattern that fits decides. A command that nobody thought of is asked about. */
function decideBy(policy: Policy, command: string): Decision {
  if (typeof policy === 'string') {
    return policy;
  }
  const fitting = Object.entries(policy).find(([pattern]) => fits(pattern, command));
  return fitting ? fitting[1] : 'ask';
}

/** `*` stands for any text, everything else for itself. */
function fits(pattern: string, command: string): boolean {
  const parts = pattern.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${parts.join('.*')}$`, 's').test(command);
}

/** A value that is neither is a mistake of its writer: it must not open anything. */
function isPolicy(value: unknown): value is Policy {
  return isDecision(value) || (isObject(value) && Object.values(value).every(isDecision));
}

function isDecision(value: unknown): value is Decision {
  return DECISIONS.some((decision) => decision === value);
}
