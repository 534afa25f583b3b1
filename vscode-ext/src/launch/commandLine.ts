/** The command lines of a run: what runs, the bridge round it, and the terminal round both. */

import path from 'node:path';

/** What a template may refer to. */
export interface Variables {
  readonly python: string;
  readonly file: string;
  readonly fileBasename: string;
  readonly fileDirname: string;
  readonly workspaceFolder: string;
}

export function variables(python: string, file: string, workspaceFolder: string): Variables {
  return {
    python,
    file,
    fileBasename: path.basename(file),
    fileDirname: path.dirname(file),
    workspaceFolder,
  };
}

/** Fills in the template of `evolve.run.command`. Throws with a sentence about what is wrong. */
export function expand(template: readonly string[], known: Variables): string[] {
  return template.map((item) =>
    item.replace(/\$\{([^}]*)\}/g, (_, name: string) => {
      if (!Object.hasOwn(known, name)) {
        const names = Object.keys(known).map((key) => `\${${key}}`);
        throw new Error(`evolve.run.command has no variable \${${name}}: use ${names.join(', ')}`);
      }
      return known[name as keyof Variables];
    }),
  );
}

/** The template that runs a net when the setting is empty. */
export function defaultTemplate(engine: boolean): string[] {
  return ['${python}', '-m', engine ? 'enginepy.pnml_engine' : 'vscode_bridge.net', '${file}'];
}

export interface BridgeOptions {
  readonly daemon: string;
  readonly session: string;
  /** 0: any free port. */
  readonly port: number;
  readonly logFile: string;
  readonly logLevel: string;
}

/** The bridge round a command: one process tree with one life. */
export function withBridge(command: readonly string[], options: BridgeOptions): string[] {
  const { daemon, session, port, logFile, logLevel } = options;
  const fixedPort = port === 0 ? [] : ['--port', String(port)];
  return [
    ...[daemon, 'run', '--host', 'editor', '--session', session, ...fixedPort],
    ...['--log', logLevel, '--log-file', logFile, '--', ...command],
  ];
}

/** A program with its arguments, for `createTerminal`. */
export interface TerminalProgram {
  readonly shellPath: string;
  readonly shellArgs: string[];
}

/**
 * The editor closes a terminal in the moment in which its program ends, and all that was printed
 * is gone. This script stays behind the program until the person has read it. Nothing is ever
 * quoted: the command arrives as arguments. The trap lets Ctrl-C end the program but not the
 * script. The exit code goes to a file, by a rename, so that it is read whole.
 */
const STAY_OPEN = `
exit_file=$1
shift
trap : INT
"$@"
code=$?
echo "$code" > "$exit_file.partial" && mv "$exit_file.partial" "$exit_file"
printf '\\n\\033[2mThe run has ended with exit code %s. Press Enter to close this terminal.\\033[0m\\n' "$code"
read -r _
`;

/** Keeps the terminal of a command open, and tells its exit code in a file. */
export function stayOpen(command: readonly string[], exitFile: string): TerminalProgram {
  return { shellPath: '/bin/sh', shellArgs: ['-c', STAY_OPEN, 'run-bridge', exitFile, ...command] };
}
