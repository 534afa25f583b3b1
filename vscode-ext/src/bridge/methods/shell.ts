/** `shell/*`: persistent shells, the commands that run in them, and their output. */

export interface ShellRef {
  /** `main` when absent. */
  readonly shell?: string;
}

export interface CreateParams {
  readonly shell?: string;
  /** If a shell of this name exists, use it unchanged. */
  readonly reuse?: boolean;
  readonly cwd?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly columns?: number;
  readonly rows?: number;
}

export interface ShellInfo {
  readonly shell: string;
  readonly state: 'starting' | 'idle' | 'running' | 'closed';
  readonly cwd: string;
  readonly pid: number;
  readonly columns: number;
  readonly rows: number;
  /** How often the shell process has ended and been replaced. */
  readonly restarts: number;
  /** Bytes in its log so far. */
  readonly logEnd: number;
  /** Number of the running command, if there is one. */
  readonly command?: number;
}

export interface ListResult {
  readonly shells: readonly ShellInfo[];
}

export interface WaitOptions {
  /** End the wait when nothing was printed for this many milliseconds. */
  readonly quietMs?: number;
  /** End the wait after this many milliseconds in any case. */
  readonly limitMs?: number;
  readonly returnOnInput?: boolean;
  readonly stream?: boolean;
  /** How many bytes of output the result may show; 30,000 when absent. */
  readonly outputBytes?: number;
  /** Show only this many lines at the end. */
  readonly outputLines?: number;
  readonly colours?: boolean;
}

export interface RunParams extends WaitOptions {
  readonly command: string;
  readonly shell?: string;
  /** Start the shell if it does not exist. */
  readonly create?: boolean;
}

export interface WaitParams extends WaitOptions {
  /** Stream and show only the output from this offset on. */
  readonly from?: number;
  readonly shell?: string;
  readonly command?: number;
}

export interface OutputProgress {
  /** Offset of the piece in the shell's log. */
  readonly offset: number;
  readonly base64: string;
}

export interface Span {
  readonly start: number;
  readonly end: number;
}

export interface CommandOutput {
  readonly text: string;
  readonly start: number;
  readonly end: number;
  /** The bytes that the text leaves out; `shell/read` returns them. */
  readonly omitted?: Span;
  /** With `outputLines`: the number of lines in the text, if the output has more. */
  readonly lastLines?: number;
  /** Number of bytes that could not be recorded. */
  readonly lost?: number;
}

/** A command that has not ended. */
export interface RunningCommand {
  readonly shell: string;
  readonly command: number;
  readonly state: 'running' | 'waitingForInput';
  readonly output: CommandOutput;
  /** Why the wait ended before the command. */
  readonly why: 'quiet' | 'limit' | 'input';
  /** Kind of input that the command seems to wait for. */
  readonly input?: 'line' | 'hidden' | 'keys';
}

/** A command that has ended. */
export interface FinishedCommand {
  readonly shell: string;
  readonly command: number;
  readonly state: 'finished';
  readonly output: CommandOutput;
  readonly ended: 'atPrompt' | 'shellExited' | 'shellClosed' | 'serverGone';
  readonly cwd: string;
  readonly durationMs: number;
  readonly user: string;
  readonly machine: string;
  /** Absent if the shell ended before it could report one. */
  readonly exitCode?: number;
  readonly backgroundPid?: number;
  readonly python?: string;
}

export type CommandState = RunningCommand | FinishedCommand;

export interface ReadParams {
  readonly from?: number;
  readonly shell?: string;
  readonly bytes?: number;
  /** Return only this many lines at the end, as text. */
  readonly lines?: number;
  readonly raw?: boolean;
  readonly colours?: boolean;
}

export interface ReadResult {
  readonly start: number;
  readonly end: number;
  readonly logEnd: number;
  /** Whether there is more after `end`. */
  readonly more: boolean;
  readonly text?: string;
  readonly base64?: string;
  /** With `lines`: the number of lines in the text, if there are more. */
  readonly lastLines?: number;
}

export interface InputParams {
  readonly text: string;
  readonly shell?: string;
  readonly enter?: boolean;
}

export interface KeysParams {
  readonly keys: readonly string[];
  readonly shell?: string;
}

export interface SignalParams {
  readonly signal: 'INT' | 'TERM' | 'KILL' | 'QUIT' | 'HUP' | 'CONT' | 'STOP' | 'USR1' | 'USR2';
  readonly shell?: string;
}

export interface ResizeParams {
  readonly columns: number;
  readonly rows: number;
  readonly shell?: string;
}

export interface AttachParams {
  readonly shell?: string;
  readonly readOnly?: boolean;
}

export interface AttachResult {
  readonly command: string;
  readonly arguments: readonly string[];
}
