// What a Source takes from the outside besides sockets and files: clock, randomness, environment, other programs.
import { type ExecFileException, execFile } from "node:child_process";
import type { Clock } from "../model/clock.ts";
import { environmentOf } from "../model/environment.ts";
import type { Disk } from "./files/disk.ts";

export type { Clock };

export type Command = {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
};

/** What one request to the API took. */
export type RequestFacts = {
  readonly method: string;
  /** `192.168.0.1:6443` */
  readonly host: string;
  /** HTTP status; null: there was no response. */
  readonly code: number | null;
  /** Sent a second time, because the pooled connection was closed. */
  readonly resent: boolean;
  /** null: for a watch, which lasts for minutes. */
  readonly cost: RequestCost | null;
};

export type RequestCost = {
  /** From the request to the end of the response, including the delay of the client-side rate limit. */
  readonly seconds: number;
  /** The delay of the client-side rate limit; null: there is none. */
  readonly heldSeconds: number | null;
  readonly requestBytes: number;
  /** Decompressed; null: there was no response, or an error. */
  readonly responseBytes: number | null;
};

export type World = {
  readonly clock: Clock;
  /** A number from 0 up to but not including 1. */
  readonly random: () => number;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Runs a program and returns its output; rejects when it fails. */
  readonly run: (command: Command, signal: AbortSignal) => Promise<string>;
  /** Receives every request to the API. */
  readonly onRequest?: (facts: RequestFacts) => void;
  /** Receives what is unsafe about a connection. */
  readonly onWarning?: (warning: string) => void;
  /** How files are read; absent: asynchronously. */
  readonly disk?: Disk;
};

export function realWorld(clock: Clock): World {
  return { clock, random: Math.random, env: process.env, run: runCommand };
}

/** Resolves after `ms`; rejects with the signal's reason when that comes first. */
export function sleep(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason as Error);
    const abort = () => {
      cancel();
      reject(signal.reason as Error);
    };
    const cancel = clock.after(ms, () => {
      signal.removeEventListener("abort", abort);
      resolve();
    });
    signal.addEventListener("abort", abort, { once: true });
  });
}

function runCommand({ command, args, env }: Command, signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { env: environmentOf(env), signal, timeout: 120_000, maxBuffer: 4 << 20 };
    const child = execFile(command, args, options, (error, stdout, stderr) => {
      if (!error) return resolve(stdout);
      const stderrLine = withoutSecrets(stderr.trim().split("\n").at(-1) ?? "");
      reject(new Error(stderrLine === "" ? endOf(error) : stderrLine, { cause: error }));
    });
    child.stdin?.end();
  });
}

/** Not the message of Node.js: it repeats the arguments, which may hold a secret. */
function endOf({ code, signal }: ExecFileException): string {
  if (typeof code === "string") return code;
  return signal ? `it was ended by ${signal}` : `it failed with exit code ${code}`;
}

/** Strings that may be a token or a key: long, with letters and digits. */
function withoutSecrets(text: string): string {
  return text.replace(/[A-Za-z0-9_+=-]{16,}/g, (word) => (/[0-9]/.test(word) ? "[redacted]" : word));
}
