/**
 * Checks of parsed JSON values: the same members as the type has, of the right types.
 *
 * `object` takes a check for every member of its type, and `optional` ones for exactly the optional members; so a
 * check that does not fit its type does not compile.
 */

/** Describes what is wrong with a value, or returns undefined. */
export interface Check<T> {
  (value: unknown, place: string): string;
  /** Never present. It makes the compiler distinguish checks of different types. */
  readonly of?: (value: T) => T;
}

/** A check of a member that may be absent. */
interface Optional<T> {
  readonly optional: Check<T>;
}

type Members<T> = {
  readonly [K in keyof T]-?: Record<string, never> extends Pick<T, K>
    ? Optional<Exclude<T[K], undefined>>
    : Check<T[K]>;
};

export const text: Check<string> = scalar('string');
export const number: Check<number> = scalar('number');
export const flag: Check<boolean> = scalar('boolean');
export const anything: Check<unknown> = () => '';

export function word<T extends string>(...words: readonly T[]): Check<T> {
  return (value, place) => (words.includes(value as T) ? '' : `${place} is none of ${words.join(', ')}`);
}

export function nullable<T>(check: Check<T>): Check<T | null> {
  return (value, place) => (value === null ? '' : check(value, place));
}

export function optional<T>(check: Check<T>): Optional<T> {
  return { optional: check };
}

export function list<T>(check: Check<T>): Check<readonly T[]> {
  return (value, place) =>
    Array.isArray(value)
      ? first(value.map((each, n) => check(each, `${place}[${n}]`)))
      : `${place} is no array`;
}

export function record<T>(check: Check<T>): Check<Readonly<Record<string, T>>> {
  return (value, place) =>
    isObject(value)
      ? first(Object.entries(value).map(([name, each]) => check(each, `${place}.${name}`)))
      : `${place} is no object`;
}

export function anyOf<T extends readonly unknown[]>(
  ...checks: { readonly [I in keyof T]: Check<T[I]> }
): Check<T[number]> {
  return (value, place) => {
    const problems = checks.map((check) => check(value, place));
    return problems.includes('') ? '' : problems.join(' or ');
  };
}

export function object<T>(members: Members<T>): Check<T> {
  const checks = Object.entries(members as Readonly<Record<string, Check<unknown> | Optional<unknown>>>);
  return (value, place) => {
    if (!isObject(value)) {
      return `${place} is no object`;
    }
    const unknown = Object.keys(value).filter((name) => !(name in members));
    if (unknown.length > 0) {
      return `${place} has unknown members: ${unknown.join(', ')}`;
    }
    return first(
      checks.map(([name, check]) => {
        if (!(name in value)) {
          return 'optional' in check ? '' : `${place}.${name} is missing`;
        }
        return ('optional' in check ? check.optional : check)(value[name], `${place}.${name}`);
      }),
    );
  };
}

function scalar<T>(name: 'string' | 'number' | 'boolean'): Check<T> {
  return (value, place) => (typeof value === name ? '' : `${place} is no ${name}`);
}

function first(problems: readonly string[]): string {
  return problems.find((problem) => problem !== '') ?? '';
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
