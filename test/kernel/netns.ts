// Network namespaces for kernel tests: named after this process, so that leftovers of dead ones can be told and removed.
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";

export type Namespace = {
  readonly name: string;
  /** What `openSocket` and others take as `netns`. */
  readonly path: string;
  /** Runs a program inside and gives what it prints; throws when it fails. */
  run(command: string, ...args: readonly string[]): string;
  /** The same with something on its standard input. */
  feed(input: string, command: string, ...args: readonly string[]): string;
  remove(): void;
};

const prefix = "tt-";
let count = 0;
let swept = false;

/** Kernel tests are skipped when this is false. */
export const isRoot = process.getuid?.() === 0;

export function createNamespace(): Namespace {
  if (!swept) sweep();
  swept = true;
  const name = `${prefix}${process.pid}-${++count}`;
  execFileSync("ip", ["netns", "add", name]);
  const feed = (input: string, command: string, ...args: readonly string[]) =>
    execFileSync("ip", ["netns", "exec", name, command, ...args], {
      input,
      encoding: "utf8",
      stdio: ["pipe", "pipe", "pipe"],
      maxBuffer: 256 * 1024 * 1024,
    });
  return {
    name,
    path: `/run/netns/${name}`,
    feed,
    run: (command, ...args) => feed("", command, ...args),
    remove: () => void execFileSync("ip", ["netns", "delete", name]),
  };
}

function sweep(): void {
  const names = execFileSync("ip", ["netns", "list"], { encoding: "utf8" }).match(/^tt-\d+-\d+/gm) ?? [];
  for (const name of names) {
    const pid = name.split("-")[1];
    if (!existsSync(`/proc/${pid}`)) execFileSync("ip", ["netns", "delete", name]);
  }
}
