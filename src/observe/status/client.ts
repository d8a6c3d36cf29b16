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
  // A line may arrive in many parts.
  let begun: string[] = [];
  for await (const some of await answerTo(socketPath, `${path}?${new URLSearchParams(query).toString()}`)) {
    const end = some.lastIndexOf("\n");
    begun.push(some.slice(0, Math.max(0, end)));
    if (end < 0) begun[begun.length - 1] = some;
    else {
      for (const line of begun.join("").split("\n")) yield JSON.parse(line) as StreamedAnswers[Path];
      begun = [some.slice(end + 1)];
    }
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
