/** Files that can be run. */

export const NET_SUFFIXES = ['.evolve.yaml', '.pnml.yaml'] as const;

export function isNetFile(file: string): boolean {
  return NET_SUFFIXES.some((suffix) => file.endsWith(suffix));
}
