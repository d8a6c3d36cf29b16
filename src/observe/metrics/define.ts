// A line of the metrics table: name, type, labels, buckets, and where the metric exists.
import { type ModeName, modes } from "../../config/modes.ts";

export type Stability = "ALPHA" | "BETA" | "STABLE";

/** Where a metric is exposed: in these modes, and only while the gate (if any) is on. */
export type Scope = { readonly modes: readonly ModeName[]; readonly gate: string | null };

export type Definition<Type extends string = string, L extends string = string> = {
  readonly name: string;
  /** `read` counters and gauges have no value of their own: they are read when they are scraped. */
  readonly type: Type;
  readonly labels: readonly L[];
  readonly buckets: readonly number[];
  readonly scope: Scope;
  /** null: printed without a stability mark, as the Go client does for `process_*`. */
  readonly stability: Stability | null;
  readonly help: string;
  /** Kubernetes minor version, e.g. `1.36`, since which the metric is deprecated. */
  readonly deprecatedSince?: string;
};

export type DefinitionType = "counter" | "gauge" | "histogram" | "readCounter" | "readGauge";

export const everywhere: Scope = { modes: Object.keys(modes) as ModeName[], gate: null };

export function inModes(...modes: ModeName[]): Scope {
  return { modes, gate: null };
}

export function counter<const L extends string>(
  name: string,
  labels: readonly L[],
  scope: Scope,
  help: string,
) {
  return define("counter", name, labels, scope, help);
}

export function gauge<const L extends string>(
  name: string,
  labels: readonly L[],
  scope: Scope,
  help: string,
) {
  return define("gauge", name, labels, scope, help);
}

export function histogram<const L extends string>(
  name: string,
  labels: readonly L[],
  buckets: readonly number[],
  scope: Scope,
  help: string,
) {
  return { ...define("histogram", name, labels, scope, help), buckets };
}

/** A counter whose value lives elsewhere, e.g. in the kernel. */
export function readCounter<const L extends string>(
  name: string,
  labels: readonly L[],
  scope: Scope,
  help: string,
) {
  return define("readCounter", name, labels, scope, help);
}

/** A gauge whose value lives elsewhere. */
export function readGauge<const L extends string>(
  name: string,
  labels: readonly L[],
  scope: Scope,
  help: string,
) {
  return define("readGauge", name, labels, scope, help);
}

/** The same metric with another stability mark; null for none. */
export function marked<D extends Definition>(stability: Stability | null, definition: D): D {
  return { ...definition, stability };
}

/** `count` bounds from `start`, each `factor` times the one before. */
export function exponential(start: number, factor: number, count: number): readonly number[] {
  return Array.from({ length: count }, (_, i) => start * factor ** i);
}

/** `count` bounds from `start`, each `step` above the one before. */
export function linear(start: number, step: number, count: number): readonly number[] {
  return Array.from({ length: count }, (_, i) => start + step * i);
}

function define<Type extends DefinitionType, L extends string>(
  type: Type,
  name: string,
  labels: readonly L[],
  scope: Scope,
  help: string,
): Definition<Type, L> {
  return { name, type, labels, buckets: [], scope, stability: "ALPHA", help };
}
