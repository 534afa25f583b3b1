/** `runtime/*`: which hosts are attached, and what they serve. */

/** The description with which a host registers. Before that, it gets no requests. */
export interface RegisterParams {
  /** Canonical names of its methods; `dapEvent` to receive events. */
  readonly methods: readonly string[];
  /** Its id, the same after a reconnection. A host that registers the same id replaces the older connection. */
  readonly runtimeId?: string;
  readonly title?: string;
  readonly workspaceFolders?: readonly string[];
  readonly focused?: boolean;
  /** Whether it is an edge, whose methods are for every runtime. It passes `runtimeId` and `path` on to tools. */
  readonly edge?: boolean;
}

export interface RuntimeRef {
  readonly runtimeId: string;
}

/** The members that have changed. Absent members stay unchanged. */
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
  /** Number of requests that it is working on. */
  readonly inFlight: number;
  /** Whether its methods are for every runtime. */
  readonly edge?: boolean;
}
