/** The question to a person before a command is executed, and the commands that the answer covers. */

/** The editor cuts a notification after 1000 characters. The rest is room for the words around. */
const SHOWN = 700;

/** Characters that are invisible, or that change how the text around them is shown; not the space. */
const INVISIBLE = /(?! )[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}]/gu;

/** A command with its arguments, as text. */
export interface ShownCommand {
  readonly command: string;
  /** The arguments as JSON, separated by commas; empty without arguments. */
  readonly args: string;
  /** Whether all of it fits into a notification. If not, it must be shown in another way first. */
  readonly fits: boolean;
}

export function showCommand(command: string, args: readonly unknown[]): ShownCommand {
  const shown = { command: visible(command), args: visible(JSON.stringify(args).slice(1, -1)) };
  return { ...shown, fits: shown.command.length + shown.args.length <= SHOWN };
}

/** Identifies what a person allows for the rest of a run: the command with exactly these arguments. */
export function grantOf(command: string, args: readonly unknown[]): string {
  return JSON.stringify([command, args]);
}

function visible(text: string): string {
  return text.replace(INVISIBLE, (character) => `\\u{${character.codePointAt(0)?.toString(16) ?? ''}}`);
}
