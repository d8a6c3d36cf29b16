// The views of a node that its daemon answers on the status socket.
import { type IncomingMessage, request } from "node:http";
import {
  type PageViews,
  pageHeader,
  pagePrefix,
  type ViewAnswer,
  viewError,
} from "../observe/status/page-views.ts";
import { LatestEvents } from "./latest-events.ts";

/** Longer than the daemon takes between two signs of life. */
const timeoutMs = 15_000;

export function remoteViews(socketPath: string): PageViews {
  return {
    async answer(view, query) {
      try {
        const response = await responseTo(socketPath, `${view}?${query.toString()}`);
        if (response.headers[pageHeader] === undefined) {
          response.destroy();
          return viewError(503, anotherVersion(socketPath));
        }
        let body = "";
        for await (const some of response.setEncoding("utf8")) body += some;
        return { status: response.statusCode as ViewAnswer["status"], body };
      } catch (error) {
        return viewError(503, unreachable(socketPath, error));
      }
    },
    events() {
      const stream = new LatestEvents();
      void follow(socketPath, stream);
      return stream;
    },
  };
}

/** Passes the events of the daemon on; the reader connects again when they end. */
async function follow(socketPath: string, stream: LatestEvents): Promise<void> {
  try {
    const response = await responseTo(socketPath, "events");
    if (response.headers[pageHeader] === undefined) throw new Error("another version");
    stream.once("close", () => response.destroy());
    let rest = "";
    for await (const some of response.setEncoding("utf8")) {
      const blocks = `${rest}${some}`.split("\n\n");
      rest = blocks.pop()!;
      for (const block of blocks) {
        if (block.startsWith("data: ")) stream.send(JSON.parse(block.slice(6)));
        else stream.beat();
      }
    }
  } catch {
    // The end of the stream is the message.
  }
  stream.finish();
}

function responseTo(socketPath: string, path: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    // No connection is kept: the next daemon at the same path is another one.
    const call = request(
      { socketPath, path: `${pagePrefix}${path}`, timeout: timeoutMs, agent: false },
      resolve,
    );
    call.on("error", reject);
    call.on("timeout", () => call.destroy(new Error(`no response in ${timeoutMs / 1000} s`)));
    call.end();
  });
}

function anotherVersion(socketPath: string): string {
  return `the daemon at ${socketPath} is of a version without the page; use turnout page --source=api --node=NAME`;
}

function unreachable(socketPath: string, error: unknown): string {
  return `the daemon at ${socketPath} does not respond: ${(error as Error).message}`;
}
