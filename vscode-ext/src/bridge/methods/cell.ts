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
  /** Number of bytes that the text leaves out. */
  readonly omittedBytes?: number;
  readonly pictures?: readonly Picture[];
  /** Why the cell ran in a new kernel, if it did. */
  readonly newKernel?: 'restarted' | 'wasStuck';
}
