/** Sends requests to the test extension `remote-control` of a window. */

import net from 'node:net';
import { text } from 'node:stream/consumers';

export type Request =
  | { readonly action: 'execute'; readonly command: string; readonly args: readonly unknown[] }
  | { readonly action: 'open'; readonly file: string };

interface Answer {
  readonly result?: unknown;
  readonly error?: string;
}

/** Resolves with the result of the request, or rejects with the error of the editor. */
export async function send(socket: string, request: Request): Promise<unknown> {
  const connection = net.connect({ path: socket, allowHalfOpen: true });
  connection.end(JSON.stringify(request));
  const answer = await text(connection);
  if (answer === '') {
    throw new Error(`the window went away during ${JSON.stringify(request)}`);
  }
  const { result, error } = JSON.parse(answer) as Answer;
  if (error !== undefined) {
    throw new Error(`${JSON.stringify(request)} failed: ${error}`);
  }
  return result;
}
