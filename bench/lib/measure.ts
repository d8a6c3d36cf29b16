// What benchmarks share: time, retained heap, and a table that is also written as JSON.
import { writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";

/** Milliseconds that `work` takes at its best of `rounds`; `prepare` makes its input outside the measured time. */
export function bestMs<T>(rounds: number, prepare: () => T, work: (input: T) => unknown): number {
  const times = Array.from({ length: rounds }, () => {
    const input = prepare();
    // Whatever survives two collections is moved no more: the work does not pay for moving its input.
    for (let i = 0; i < 2; i++) globalThis.gc?.({ type: "minor", execution: "sync" });
    const started = performance.now();
    work(input);
    return performance.now() - started;
  });
  return Math.min(...times);
}

/** MB of heap that the result of `make` keeps alive. */
export function retainedMB(make: () => unknown): number {
  collectGarbage();
  const before = process.memoryUsage().heapUsed;
  const kept = make();
  collectGarbage();
  const after = process.memoryUsage().heapUsed;
  holdOn(kept);
  return (after - before) / 1e6;
}

export type Row = {
  readonly what: string;
  readonly value: number;
  readonly unit: string;
  /** What it must not exceed, or with `atLeast` not fall below. */
  readonly limit?: number;
  readonly atLeast?: boolean;
};

/** A row of several rounds: `value` is their median. */
type Merged = Row & { readonly values: readonly number[] };

/**
 * Prints the rows and writes them; rows of the same name are rounds of one measurement. A missed limit is printed, but is no
 * failure: machines differ.
 */
export function publish(measured: readonly Row[]): void {
  const rows = merge(measured);
  for (const row of rows)
    console.log(`  ${row.what.padEnd(52)} ${shown(row.value).padStart(12)} ${line(row)}`);
  const file = process.env.TURNOUT_BENCH_RESULT;
  const cores = cpus().length;
  const load = loadavg()[0]!;
  const machine = { node: process.version, cpu: cpus()[0]?.model ?? "", cores, load };
  if (load > cores) console.log(`  (the machine is busy: load ${load.toFixed(1)} on ${cores} cores)`);
  if (file !== undefined) {
    writeFileSync(file, `${JSON.stringify({ at: new Date().toISOString(), ...machine, rows }, null, 2)}\n`);
  }
}

function merge(rows: readonly Row[]): readonly Merged[] {
  return [...Map.groupBy(rows, ({ what }) => what).values()].map((rounds) => {
    const values = rounds.map(({ value }) => value).sort((a, b) => a - b);
    return { ...rounds[0]!, value: median(values), values };
  });
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  if (sorted.length % 2 === 1) return sorted[middle]!;
  return ((sorted[middle - 1] ?? Number.NaN) + (sorted[middle] ?? Number.NaN)) / 2;
}

function line(row: Merged): string {
  const notes = [
    row.values.length > 1 ? `${shown(row.values[0]!)}–${shown(row.values.at(-1)!)}` : "",
    row.limit === undefined ? "" : `${row.atLeast ? "at least" : "at most"} ${shown(row.limit)}`,
  ].filter((note) => note !== "");
  const missed = withinLimit(row) ? "" : ": MISSED";
  return notes.length === 0 ? row.unit : `${row.unit}  (${notes.join(", ")}${missed})`;
}

function withinLimit({ value, limit, atLeast }: Row): boolean {
  return limit === undefined || (atLeast ? value >= limit : value <= limit);
}

/** Three digits, or all of a large number. */
export function shown(value: number): string {
  if (value === 0) return "0";
  return value >= 100 ? Math.round(value).toLocaleString("en") : value.toPrecision(3);
}

function collectGarbage(): void {
  if (globalThis.gc === undefined) throw new Error("Cannot measure: start node with --expose-gc");
  globalThis.gc();
  globalThis.gc();
}

const held: unknown[] = [];

/** Keeps a value alive past the measurement, so that the collector cannot take it early. */
function holdOn(value: unknown): void {
  held.push(value);
  held.length = 0;
}
