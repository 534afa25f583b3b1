/** `runtime/*`: which hosts are attached, and what they serve. */

/** What a host says of itself. Until then nothing is sent to it. */
export interface RegisterParams {
  /** By canonical name; `dapEvent` to receive events. */
  readonly methods: readonly string[];
  /** Its own name, kept over reconnections. The same name replaces an older connection. */
  readonly runtimeId?: string;
  readonly title?: string;
  readonly workspaceFolders?: readonly string[];
  readonly focused?: boolean;
  /** Its methods serve every runtime; it passes `runtimeId` and `path` on to the tools that it calls. */
  readonly edge?: boolean;
}

export interface RuntimeRef {
  readonly runtimeId: string;
}

/** What changed; absent members stay as they are. */
export interface UpdateParams {
  readonly title?: string;
  readonly workspaceFolders?: readonly string[];
  readonly methods?: readonly string[];
  readonly focused?: boolean;
}

export interface RuntimeInfo {
  readonly runtimeId: string;
  readonly title: string;
  readonly workspaceFolders: readonly string[];
  readonly methods: readonly string[];
  readonly focused: boolean;
  /** Requests that it is working on. */
  readonly inFlight: number;
  /** Whether its methods serve every runtime. */
  readonly edge?: boolean;
}
