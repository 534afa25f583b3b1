/** `file/*`: the files of a workspace. */

export interface PathParams {
  readonly path: string;
}

export interface ReadParams {
  readonly path: string;
  readonly firstLine?: number;
  readonly lastLine?: number;
  readonly tail?: number;
  readonly raw?: boolean;
  readonly limitBytes?: number;
}

export interface TextFile {
  readonly kind: 'text';
  readonly text: string;
  readonly encoding: string;
  readonly firstLine?: number;
  readonly totalLines?: number;
  /** Absent for very large files. */
  readonly version?: string;
}

export interface MediaFile {
  readonly kind: 'media';
  readonly mediaType: string;
  readonly base64: string;
  readonly version?: string;
}

export interface BinaryFile {
  readonly kind: 'binary';
  readonly mediaType: string;
  readonly size: number;
  readonly version?: string;
}

export interface RawFile {
  readonly kind: 'raw';
  readonly base64: string;
  readonly version?: string;
}

export type ReadResult = TextFile | MediaFile | BinaryFile | RawFile;

export interface WriteParams {
  readonly path: string;
  /** The content as text. Binary content is in `base64` instead. */
  readonly text?: string;
  readonly base64?: string;
  /** True when absent. */
  readonly replace?: boolean;
  /** Permission bits of a file that did not exist. */
  readonly mode?: number;
  /** Fail with Conflict, and change nothing, if the file has another version. */
  readonly ifVersion?: string;
}

export interface WriteResult {
  readonly created: boolean;
  readonly version: string;
  /** False if the file had another owner or group, and now has those of the runtime's user. */
  readonly ownerKept: boolean;
}

/** `oldText` is replaced by `newText`; `insertAfter` inserts lines; neither creates a file. */
export interface EditParams {
  readonly path: string;
  readonly newText: string;
  readonly oldText?: string;
  /** A line; 0 inserts before the first. */
  readonly insertAfter?: number;
  /** Fail with Conflict, and change nothing, if the file has another version. */
  readonly ifVersion?: string;
}

export interface EditResult {
  readonly line: number;
  readonly linesRemoved: number;
  readonly linesAdded: number;
  readonly diff: string;
  /** Absent if undoing an edit has removed the file. */
  readonly version?: string;
  readonly ownerKept: boolean;
}

export interface UndoParams {
  readonly path: string;
  readonly force?: boolean;
}

export interface ListParams {
  readonly path?: string;
  readonly nested?: boolean;
  readonly hidden?: boolean;
  readonly limit?: number;
}

export type FileKind = 'file' | 'directory' | 'symlink' | 'pipe' | 'socket' | 'device' | 'other';

export interface FileEntry {
  readonly path: string;
  readonly kind: FileKind;
  /** For a symbolic link: the type of its target. */
  readonly target?: FileKind;
}

export interface ListResult {
  readonly entries: readonly FileEntry[];
  readonly hiddenLeftOut: number;
  readonly truncated: boolean;
  readonly unreadable?: readonly string[];
}

export interface SearchParams {
  /** A glob, or for `file/grep` a regular expression. */
  readonly pattern: string;
  readonly path?: string;
  readonly hidden?: boolean;
  readonly ignored?: boolean;
  readonly limit?: number;
}

export interface GlobResult {
  readonly paths: readonly string[];
  readonly truncated: boolean;
  readonly unreadable: number;
}

export interface GrepParams extends SearchParams {
  readonly literal?: boolean;
  readonly ignoreCase?: boolean;
  /** Only files whose path matches this glob. */
  readonly files?: string;
  readonly context?: number;
}

export interface GrepLine {
  readonly path: string;
  readonly line: number;
  readonly text: string;
  /** False for a line of context. */
  readonly matches: boolean;
}

export interface GrepResult {
  readonly lines: readonly GrepLine[];
  readonly truncated: boolean;
  readonly unreadable: number;
}

export interface StatParams {
  readonly path: string;
  readonly follow?: boolean;
}

export interface StatResult {
  readonly kind: FileKind;
  readonly size: number;
  readonly mode: number;
  readonly user: number;
  readonly group: number;
  readonly modifiedMs: number;
  /** Target of a symbolic link that was not followed. */
  readonly link?: string;
}

/** All members describe the same bytes. */
export interface HashResult {
  /** 64 lower-case hexadecimal digits. */
  readonly sha256: string;
  readonly size: number;
  /** Absent for very large files, and for those that were changed while they were read. */
  readonly version?: string;
}

export interface MakeDirectoryParams {
  readonly path: string;
  readonly parents?: boolean;
}

export interface RemoveParams {
  readonly path: string;
  readonly recursive?: boolean;
}

export interface TransferParams {
  readonly from: string;
  readonly to: string;
  readonly replace?: boolean;
}

export interface CopyResult {
  readonly ownerKept: boolean;
}
