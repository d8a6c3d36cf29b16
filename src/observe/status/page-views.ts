// What the page shows of a node, as JSON: answered by the daemon, or by a process that reads the cluster itself.
import type { Readable } from "node:stream";

/** The JSON of a view, or of the reason why there is none: `{"error": "…"}`. */
export type ViewAnswer = { readonly status: 200 | 400 | 404 | 503; readonly body: string };

export type PageViews = {
  readonly answer: (view: string, query: URLSearchParams) => Promise<ViewAnswer>;
  /** Server-sent events until it is destroyed: the latest state whenever it changed and the reader is ready. */
  readonly events: () => Readable;
};

/** Set in every answer: daemons of earlier versions answer any path with their status. */
export const pageHeader = "x-turnout-page";

/** On the status socket, views are below this path. */
export const pagePrefix = "/page/";

export function viewAnswer(status: ViewAnswer["status"], value: unknown): ViewAnswer {
  return { status, body: JSON.stringify(value) };
}

export function viewError(status: 400 | 404 | 503, error: string): ViewAnswer {
  return viewAnswer(status, { error });
}
