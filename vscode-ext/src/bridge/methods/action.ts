/** `action/*`: actions and observations of OpenHands agents. */

import type { Empty } from './empty';

/** An action of an agent, in the format of OpenHands. */
export interface ExecuteParams {
  readonly action: string;
  readonly args?: Readonly<Record<string, unknown>>;
  readonly actionId?: string;
  /** The runtime whose tools execute the action. */
  readonly runtimeId?: string;
  /** A path that chooses that runtime. */
  readonly path?: string;
  readonly shell?: string;
  readonly stream?: boolean;
  readonly timeout?: number;
}

export interface CancelParams {
  readonly actionId: string;
}

export interface OutputPiece {
  readonly text: string;
  /** Offset of the piece in the shell's log. Absent for cells. */
  readonly start?: number;
  readonly end?: number;
}

export interface RunMetadata {
  readonly exit_code: number;
  readonly pid: number;
  readonly username: string | null;
  readonly hostname: string | null;
  readonly working_dir: string | null;
  readonly py_interpreter_path: string | null;
  readonly prefix: string;
  readonly suffix: string;
}

export interface RunExtras {
  readonly command: string;
  readonly metadata: RunMetadata;
  readonly hidden: boolean;
  readonly lost?: number;
}

export interface CellExtras {
  readonly code: string;
  readonly image_urls: readonly string[] | null;
  readonly lost?: number;
}

export interface EditExtras {
  readonly path: string;
  readonly prev_exist: boolean;
  readonly old_content: string | null;
  readonly new_content: string | null;
  readonly impl_source: string;
  readonly diff: string;
  readonly _diff_cache: string | null;
}

export interface PageExtras {
  readonly url: string;
  readonly trigger_by_action: string;
  readonly screenshot: string;
  readonly screenshot_path: string | null;
  readonly set_of_marks: string;
  readonly error: boolean;
  readonly goal_image_urls: readonly string[];
  readonly open_pages_urls: readonly string[];
  readonly active_page_index: number;
  readonly dom_object: Empty;
  readonly axtree_object: Empty;
  readonly extra_element_properties: Empty;
  readonly last_browser_action: string;
  readonly last_browser_action_error: string;
  readonly focused_element_bid: string;
  readonly filter_visible_only: boolean;
}

export interface ReadExtras {
  readonly path: string;
  readonly impl_source: string;
}

export interface WriteExtras {
  readonly path: string;
}

export interface ErrorExtras {
  /** `unavailable`, `refused`, `outside_workspace`, `not_found`, `permission`, `invalid` or `internal`. */
  readonly error_id: string;
  readonly trace?: string;
}

export type Extras =
  RunExtras | CellExtras | EditExtras | PageExtras | ReadExtras | WriteExtras | ErrorExtras | Empty;

/** The observation of an action, in the format of OpenHands. */
export interface Observation {
  readonly message: string;
  readonly observation: string;
  readonly content: string;
  readonly extras: Extras;
  readonly cause?: string;
  readonly success?: boolean;
}
