// A wall clock that a test sets for one program and all that it starts, while it runs and without its help.
import { execFileSync } from "node:child_process";
import { closeSync, existsSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";

export type ShiftedClock = {
  /** Puts a program under this clock. */
  readonly env: Readonly<Record<string, string>>;
  /** From now on the clock is offset from the machine's by this many seconds. */
  set(seconds: number): void;
};

const source = join(import.meta.dirname, "..", "support", "clock-shift.c");
const compiler = "/usr/bin/cc";

/** null when clocks can be shifted here; else why they cannot. */
export function reasonNotToShift(): string | null {
  return existsSync(compiler) ? null : "no C compiler to build the shifted clock with";
}

export function shiftedClock(folder: string): ShiftedClock {
  const [library, file] = [join(folder, "clock-shift.so"), join(folder, "clock-shift")];
  execFileSync(compiler, ["-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o", library, source]);
  const set = (seconds: number) => {
    const bytes = Buffer.alloc(8);
    bytes.writeBigInt64LE(BigInt(seconds));
    // Written in place: the program has this file mapped.
    const fd = openSync(file, existsSync(file) ? "r+" : "w");
    writeSync(fd, bytes);
    closeSync(fd);
  };
  set(0);
  return { env: { LD_PRELOAD: library, CLOCK_SHIFT: file }, set };
}
