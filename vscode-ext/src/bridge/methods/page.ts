/** `page/*`: web pages. */

export interface BrowseParams {
  /** An `http:` or `https:` address, or an HTML file of the workspace. */
  readonly url: string;
  readonly limitMs?: number;
}

export interface BrowseResult {
  readonly url: string;
  readonly text: string;
  /** A picture, where the runtime has a browser. */
  readonly pngBase64?: string;
  /** Why the page could not be shown, or not in full. */
  readonly error?: string;
}
