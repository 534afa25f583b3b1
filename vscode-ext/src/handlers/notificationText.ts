/**
 * Texts from outside in notifications. The editor turns `[text](command:…)` in a notification into a link that
 * executes a command, past the policy of commands; `[text](file:…)` opens a file.
 */

/** The start of a link to anything except for a web page. */
const LINK = /\]\((?!https?:\/\/)/gi;

/** A text in which only links to web pages are links. All others stay readable: an invisible space breaks them. */
export function withoutCommandLinks(text: string): string {
  return text.replace(LINK, ']\u200b(');
}
