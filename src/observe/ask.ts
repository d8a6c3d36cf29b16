// Asks a daemon through its socket.
import { request } from "node:http";
import type { Answers } from "./status.ts";

export function ask<Path extends keyof Answers>(
  socketPath: string,
  path: Path,
  query: Readonly<Record<string, string>> = {},
): Promise<Answers[Path]> {
  return new Promise((resolve, reject) => {
    const asked = `${path}?${new URLSearchParams(query).toString()}`;
    // No connection is kept: the next daemon at the same path is another one.
    const call = request({ socketPath, path: asked, timeout: 5_000, agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        text += chunk;
      });
      response.on("end", () => resolve(JSON.parse(text) as Answers[Path]));
    });
    call.on("error", reject);
    call.on("timeout", () => call.destroy(new Error("no answer in 5 s")));
    call.end();
  });
}
