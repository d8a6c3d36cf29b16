// What a user-mode kernel needs on a processor with more registers than it knows.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, renameSync } from "node:fs";
import { join } from "node:path";

const folder = join(import.meta.dirname, "..", "..", "dist", "uml");

/** The environment of the kernel's process. */
export function kernelEnv(): NodeJS.ProcessEnv {
  return hasLargeRegisters() ? { ...process.env, LD_PRELOAD: libraryOf("registers.c") } : process.env;
}

/** The compiler, where it is needed. */
export const compiler = "/usr/bin/cc";

export function hasLargeRegisters(): boolean {
  return /^flags\b.*\bamx_tile\b/m.test(readFileSync("/proc/cpuinfo", "utf8"));
}

function libraryOf(source: string): string {
  const library = join(folder, `${source}.so`);
  if (existsSync(library)) return library;
  mkdirSync(folder, { recursive: true });
  // Several test processes may do this at the same time.
  const begun = `${library}.${process.pid}`;
  execFileSync(compiler, ["-O2", "-shared", "-fPIC", "-o", begun, join(import.meta.dirname, source)]);
  renameSync(begun, library);
  return library;
}
