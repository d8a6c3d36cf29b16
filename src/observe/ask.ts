// Asks a daemon through its socket.
import { request } from "node:http";
import type { Answers, Tales } from "./status.ts";

export async function ask<Path extends keyof Answers>(
  socketPath: string,
  path: Path,
  query: Readonly<Record<string, string>> = {},
): Promise<Answers[Path]> {
  let text = "";
  for await (const some of await answerTo(socketPath, `${path}?${new URLSearchParams(query).toString()}`))
    text += some;
  return JSON.parse(text) as Answers[Path];
}

/** What it tells piece by piece; each is read while it says the next. */
export async function* listen<Path extends keyof Tales>(
  socketPath: string,
  path: Path,
): AsyncGenerator<Tales[Path]> {
  let begun = "";
  for await (const some of await answerTo(socketPath, path)) {
    const lines = `${begun}${some}`.split("\n");
    begun = lines.pop()!;
    for (const line of lines) yield JSON.parse(line) as Tales[Path];
  }
}

/** The text of the answer, as it comes. Throws when it breaks off. */
function answerTo(socketPath: string, path: string): Promise<AsyncIterable<string>> {
  return new Promise((resolve, reject) => {
    // No connection is kept: the next daemon at the same path is another one.
    const call = request({ socketPath, path, timeout: 5_000, agent: false }, (response) =>
      resolve(response.setEncoding("utf8")),
    );
    call.on("error", reject);
    call.on("timeout", () => call.destroy(new Error("no answer in 5 s")));
    call.end();
  });
}
