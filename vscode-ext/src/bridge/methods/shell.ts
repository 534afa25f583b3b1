/** `shell/*`: persistent shells, the commands that run in them, and their output. */

export interface ShellRef {
  /** `main` when absent. */
  readonly shell?: string;
}

export interface CreateParams {
  readonly shell?: string;
  /** If there is a shell of this name, use it as it is. */
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
  /** How many shells under this name have ended and been replaced. */
  readonly restarts: number;
  /** Bytes in its log so far. */
  readonly logEnd: number;
  /** The number of the command that runs. */
  readonly command?: number;
}

export interface ListResult {
  readonly shells: readonly ShellInfo[];
}

export interface WaitOptions {
  /** End the wait when nothing was printed for so long. */
  readonly quietMs?: number;
  /** End the wait after so long in any case. */
  readonly limitMs?: number;
  readonly returnOnInput?: boolean;
  readonly stream?: boolean;
  /** How many bytes of output the result may show; 30,000 when absent. */
  readonly outputBytes?: number;
  /** Show only so many lines at the end. */
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
  /** Where in the shell's log the piece begins. */
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
  /** What the text leaves out; `shell/read` has it. */
  readonly omitted?: Span;
  /** How many lines the text has, if the output has more than `outputLines`. */
  readonly lastLines?: number;
  /** Bytes that the full log could not keep. */
  readonly lost?: number;
}

/** A command that has not ended. */
export interface GoingOn {
  readonly shell: string;
  readonly command: number;
  readonly state: 'running' | 'waitingForInput';
  readonly output: CommandOutput;
  /** Why the wait ended before the command. */
  readonly why: 'quiet' | 'limit' | 'input';
  /** What the command seems to wait for. */
  readonly input?: 'line' | 'hidden' | 'keys';
}

/** A command that has ended. */
export interface Finished {
  readonly shell: string;
  readonly command: number;
  readonly state: 'finished';
  readonly output: CommandOutput;
  readonly ended: 'atPrompt' | 'shellExited' | 'shellClosed' | 'serverGone';
  readonly cwd: string;
  readonly durationMs: number;
  readonly user: string;
  readonly machine: string;
  /** Absent if the shell was taken away under the command. */
  readonly exitCode?: number;
  readonly backgroundPid?: number;
  readonly python?: string;
}

export type CommandState = GoingOn | Finished;

export interface ReadParams {
  readonly from?: number;
  readonly shell?: string;
  readonly bytes?: number;
  /** Only so many lines at the end, as text. */
  readonly lines?: number;
  readonly raw?: boolean;
  readonly colours?: boolean;
}

export interface ReadResult {
  readonly start: number;
  readonly end: number;
  readonly logEnd: number;
  /** Whether there is more behind `end`. */
  readonly more: boolean;
  readonly text?: string;
  readonly base64?: string;
  /** How many lines the text has, if there are more than `lines`. */
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
