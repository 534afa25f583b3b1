/** Workspaces and nets for tests. */

import { execFileSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, writeFileSync } from 'node:fs';
import path from 'node:path';

/** A net with one transition that runs this Python code once. */
export function net(code: string): string {
  const lines = code
    .trim()
    .split('\n')
    .map((line) => ' '.repeat(22) + line);
  return `pnml:
  net:
    - id: orders
      page:
        - id: page1
          place:
            - id: waiting
              evolve:
                initialTokens:
                  - value: "order-17"
            - id: handled
          transition:
            - id: announce
              evolve:
                inscriptions:
                  - id: say
                    language: python
                    kind: expression
                    source: inline
                    code: |
${lines.join('\n')}
          arc:
            - id: in1
              source: waiting
              target: announce
            - id: out1
              source: announce
              target: handled
`;
}

/** Makes a folder with these files, and workspace settings if there are any. */
export function workspace(folder: string, files: Record<string, string>, settings?: object): string {
  const all = settings ? { ...files, '.vscode/settings.json': JSON.stringify(settings) } : files;
  for (const [name, text] of Object.entries(all)) {
    const file = path.join(folder, name);
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
  return folder;
}

/** A FIFO that a net reads, so that the net waits until the test opens it. */
export class Fifo {
  /** Python code that waits for the FIFO. */
  readonly code: string;

  constructor(private readonly file: string) {
    mkdirSync(path.dirname(file), { recursive: true });
    execFileSync('mkfifo', [file]);
    this.code = `open(${JSON.stringify(file)}).read()`;
  }

  open(): void {
    // Opening both ends at once never blocks. Closing them gives the net the end of file.
    closeSync(openSync(this.file, 'r+'));
  }
}

/** A word that no earlier run can have used. */
export function randomWord(): string {
  return Array.from({ length: 8 }, () => 'abcdefghijklmnopqrstuvwxyz'[Math.floor(Math.random() * 26)]).join(
    '',
  );
}

/** How the fake model answers. */
export const backwards = (text: string): string => Array.from(text).reverse().join('');
