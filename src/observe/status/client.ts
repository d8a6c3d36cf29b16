// The client of the daemon's status socket.
import { open, rm } from "node:fs/promises";
import { type IncomingMessage, request } from "node:http";
import { pipeline } from "node:stream/promises";
import { type Answers, heapPath, type StreamedAnswers } from "./status.ts";

export async function queryDaemon<Path extends keyof Answers>(
  socketPath: string,
  path: Path,
  query: Readonly<Record<string, string>> = {},
): Promise<Answers[Path]> {
  let text = "";
  for await (const some of await answerTo(socketPath, `${path}?${new URLSearchParams(query).toString()}`))
    text += some;
  return JSON.parse(text) as Answers[Path];
}

/** Each line of the response is parsed while the next one arrives. */
export async function* streamFromDaemon<Path extends keyof StreamedAnswers>(
  socketPath: string,
  path: Path,
  query: Readonly<Record<string, string>> = {},
): AsyncGenerator<StreamedAnswers[Path]> {
  let begun = "";
  for await (const some of await answerTo(socketPath, `${path}?${new URLSearchParams(query).toString()}`)) {
    const lines = `${begun}${some}`.split("\n");
    begun = lines.pop()!;
    for (const line of lines) yield JSON.parse(line) as StreamedAnswers[Path];
  }
}

/** Taking the snapshot of a large heap may take minutes. */
const heapMs = 300_000;

/** Writes a heap snapshot of the daemon to a new file that only its owner can read: it contains credentials. */
export async function saveHeap(socketPath: string, file: string): Promise<void> {
  const target = await open(file, "wx", 0o600);
  try {
    await pipeline(await responseTo(socketPath, heapPath, heapMs), target.createWriteStream());
  } catch (error) {
    await target.close();
    await rm(file);
    throw error;
  }
}

/** The text of the response, as it arrives. Throws when it is cut off. */
async function answerTo(socketPath: string, path: string): Promise<AsyncIterable<string>> {
  return (await responseTo(socketPath, path, 5_000)).setEncoding("utf8");
}

function responseTo(socketPath: string, path: string, timeout: number): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    // No connection is kept: the next daemon at the same path is another one.
    const call = request({ socketPath, path, timeout, agent: false }, resolve);
    call.on("error", reject);
    call.on("timeout", () => call.destroy(new Error(`no response in ${timeout / 1000} s`)));
    call.end();
  });
}
