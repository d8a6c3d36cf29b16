// Runs the programs of one family's tables, in our network namespace or another.
import { spawn } from "node:child_process";
import { Readable } from "node:stream";
import type { Family } from "../../model/address.ts";
import { environmentOf } from "../../model/environment.ts";
import { HostError } from "../error.ts";

/** The result of a program. */
export type Finished = {
  /** null: it was killed. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
};

/** A program that is running. */
export type Running = { readonly pid: number | undefined; readonly finished: Promise<Finished> };

/** Starts a program with this on its standard input; pieces are taken as the program reads them. */
export type Start = (
  program: string,
  args: readonly string[],
  input: string | Iterable<string>,
  signal?: AbortSignal,
) => Running;

export type Place = { readonly netns?: string };

/** Names of the programs; each family has its own. */
export const programs = {
  ipv4: { edit: "iptables", save: "iptables-save", restore: "iptables-restore" },
  ipv6: { edit: "ip6tables", save: "ip6tables-save", restore: "ip6tables-restore" },
} as const satisfies Record<Family, unknown>;

/** Waits at most five seconds for the lock of the legacy back end, as kube-proxy does. */
export const waitForLock = ["-w", "5"] as const;

let ended = 0;

/** How many of the programs that were started here have ended. */
export function programsEnded(): number {
  return ended;
}

/** Starts programs of this machine; always the same function for our own network namespace. */
export function starter({ netns }: Place = {}): Start {
  if (netns === undefined) return start;
  return (program, args, input, signal) =>
    start("nsenter", [`--net=${netns}`, program, ...args], input, signal);
}

/** Runs to the end. A program that is missing is `unavailable`. */
export function run(
  startProgram: Start,
  program: string,
  args: readonly string[],
  input = "",
  signal?: AbortSignal,
): Promise<Finished> {
  return startProgram(program, args, input, signal).finished;
}

function start(
  program: string,
  args: readonly string[],
  input: string | Iterable<string>,
  signal?: AbortSignal,
): Running {
  // Messages are read by us too, so they must come in English.
  const env = environmentOf(process.env, { LC_ALL: "C" });
  const stdin = input === "" ? "ignore" : "pipe";
  const child = spawn(program, args, {
    env,
    stdio: [stdin, "pipe", "pipe"],
    ...(signal === undefined ? {} : { signal }),
  });
  child.once("exit", () => {
    ended++;
  });
  const finished = new Promise<Finished>((resolve, reject) => {
    const texts = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
    child.stdout?.on("data", (chunk: Buffer) => texts.stdout.push(chunk));
    child.stderr?.on("data", (chunk: Buffer) => texts.stderr.push(chunk));
    child.on("error", (cause) => reject(notStarted(program, cause)));
    child.on("close", (code) => {
      const text = (chunks: readonly Buffer[]) => Buffer.concat(chunks).toString("utf8");
      resolve({ code, stdout: text(texts.stdout), stderr: text(texts.stderr) });
    });
    // A program that ends early closes its input; its exit status is more useful than the broken pipe.
    child.stdin?.on("error", () => undefined);
    if (typeof input === "string") child.stdin?.end(input);
    else if (child.stdin !== null) Readable.from(input).pipe(child.stdin);
  });
  return { pid: child.pid, finished };
}

function notStarted(program: string, cause: Error): Error {
  if (cause.name === "AbortError") return cause;
  const errno = (cause as NodeJS.ErrnoException).code ?? "";
  return new HostError("unavailable", `Cannot run ${program}: ${errno || cause.message}`, { cause, errno });
}
