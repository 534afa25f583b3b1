/** Decides whether a run may execute an editor command. */

import { isObject } from '../bridge/protocol';

/** The decisions, from loose to strict. */
const DECISIONS = ['allow', 'ask', 'deny'] as const;

export type Decision = (typeof DECISIONS)[number];

/** A value of the setting `evolve.commands.policy`: one decision for all commands, or decisions by patterns. */
export type Policy = Decision | Readonly<Record<string, Decision>>;

/** The values of the setting by layer. A layer without a value is `undefined`. */
export interface PolicyLayers {
  /** The user's value. A workspace can make it stricter, but never looser. */
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

/** The first matching pattern decides. Without one, the person is asked. */
function decideBy(policy: Policy, command: string): Decision {
  if (typeof policy === 'string') {
    return policy;
  }
  const fitting = Object.entries(policy).find(([pattern]) => fits(pattern, command));
  return fitting ? fitting[1] : 'ask';
}

/** Whether a pattern matches, in which `*` stands for any text. */
function fits(pattern: string, command: string): boolean {
  const parts = pattern.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${parts.join('.*')}$`, 's').test(command);
}

/** Whether a value is valid. An invalid value is a mistake in the settings, and must not allow anything. */
function isPolicy(value: unknown): value is Policy {
  return isDecision(value) || (isObject(value) && Object.values(value).every(isDecision));
}

function isDecision(value: unknown): value is Decision {
  return DECISIONS.some((decision) => decision === value);
}
