/** The command line of a run: the program, the daemon that runs it, and the script that keeps the terminal open. */

import path from 'node:path';

/** The variables that a template may use. */
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

/** Fills in the template of `evolve.run.command`. Throws an error that says what is wrong with it. */
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
  /** 0 for any free port. */
  readonly port: number;
  readonly logFile: string;
  readonly logLevel: string;
}

/** Wraps a command in `bridge-daemon run`, so that daemon and program end together. */
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
 * The editor closes a terminal as soon as its program ends, and the output is gone. This script runs the program and
 * then waits until the person has read the output. The command is passed as arguments, so nothing needs to be quoted.
 * The trap lets Ctrl-C end the program but not the script. The exit code is written to a file by a rename, so that it
 * is never read half-written.
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

/** Keeps the terminal of a command open, and writes its exit code to a file. */
export function stayOpen(command: readonly string[], exitFile: string): TerminalProgram {
  return { shellPath: '/bin/sh', shellArgs: ['-c', STAY_OPEN, 'run-bridge', exitFile, ...command] };
}
