/** `cell/*`: Python code in the IPython kernel of a shell. */

export interface RunParams {
  readonly code: string;
  readonly shell?: string;
  readonly restart?: boolean;
  readonly limitMs?: number;
  readonly stream?: boolean;
}

export interface Picture {
  readonly mediaType: string;
  readonly base64: string;
}

export interface RunResult {
  readonly text: string;
  readonly ended: 'finished' | 'raised' | 'timedOut' | 'kernelDied';
  readonly cwd: string;
  readonly python: string;
  /** Bytes that are missing in the text. */
  readonly omittedBytes?: number;
  readonly pictures?: readonly Picture[];
  /** Why the kernel is a new one, if it is. */
  readonly newKernel?: 'restarted' | 'wasStuck';
}
