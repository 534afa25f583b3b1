/** Chooses the language model: the one that the caller names, else the one in the setting, else the first. */

/** The names by which a model can be chosen. */
export interface ModelNames {
  readonly id: string;
  readonly name: string;
  readonly family: string;
}

export type ModelChoice<M> =
  | { readonly kind: 'chosen'; readonly model: M }
  | { readonly kind: 'none' }
  | { readonly kind: 'unknown'; readonly wanted: string };

/** Chooses a model. An exact name comes before a part of a name, for which case does not matter. */
export function chooseModel<M extends ModelNames>(
  offered: readonly M[],
  wanted: string | undefined,
): ModelChoice<M> {
  const [first] = offered;
  if (first === undefined) {
    return { kind: 'none' };
  }
  if (wanted === undefined || wanted === '') {
    return { kind: 'chosen', model: first };
  }
  const part = wanted.toLowerCase();
  const model =
    offered.find((candidate) => names(candidate).includes(wanted)) ??
    offered.find((candidate) => names(candidate).some((name) => name.toLowerCase().includes(part)));
  return model ? { kind: 'chosen', model } : { kind: 'unknown', wanted };
}

function names(model: ModelNames): string[] {
  return [model.id, model.name, model.family];
}
