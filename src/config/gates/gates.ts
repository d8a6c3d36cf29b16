// Feature gates: checks the requested ones against the table, and returns the state of every gate.
import { closest } from "../closest.ts";
import { removedGates } from "./removed.ts";
import { type GateName, gates } from "./table.ts";

export type Gates = (name: GateName) => boolean;

export type ResolvedGates = {
  readonly enabled: Gates;
  /** State of every gate, sorted by name; for metrics and the docs. */
  readonly all: ReadonlyMap<string, boolean>;
  /** Unknown names, and gates that are locked. */
  readonly errors: readonly string[];
  /** Gates that will go away and had better not be named any more. */
  readonly notices: readonly string[];
};

/** Explicit gates win over `AllAlpha` and `AllBeta`. */
export function resolveGates(wanted: Readonly<Record<string, boolean>>): ResolvedGates {
  const errors: string[] = [];
  const notices: string[] = [];
  const names = Object.keys(wanted).sort();
  for (const name of names) {
    const gate = gates.get(name);
    if (gate === undefined && removedGates.has(name))
      notices.push(`feature gate ${name} was removed from Kubernetes and has no effect: do not set it`);
    else if (gate === undefined) errors.push(unrecognized(name));
    else if (gate.locked && gate.on !== wanted[name]) {
      errors.push(`cannot set feature gate ${name} to ${wanted[name]}, feature is locked to ${gate.on}`);
    } else if (gate.stage === "deprecated" || gate.stage === "ga") {
      const word = gate.stage === "ga" ? "GA" : "deprecated";
      notices.push(`feature gate ${name} is ${word} and will be removed in a future release: do not set it`);
    }
  }
  const all = new Map([...gates.keys()].sort().map((name) => [name, stateOf(name, wanted)]));
  return { enabled: (name) => all.get(name) ?? false, all, errors, notices };
}

function stateOf(name: string, wanted: Readonly<Record<string, boolean>>): boolean {
  const gate = gates.get(name)!;
  const explicit = own(wanted, name);
  if (explicit !== undefined) return gate.locked ? gate.on : explicit;
  const group = gate.stage === "alpha" ? "AllAlpha" : gate.stage === "beta" ? "AllBeta" : null;
  const isGroup = name === "AllAlpha" || name === "AllBeta";
  return (group !== null && !isGroup && !gate.locked ? own(wanted, group) : undefined) ?? gate.on;
}

function own(wanted: Readonly<Record<string, boolean>>, name: string): boolean | undefined {
  return Object.hasOwn(wanted, name) ? wanted[name] : undefined;
}

function unrecognized(name: string): string {
  const guess = closest(name, gates.keys());
  return `unrecognized feature gate: ${name}${guess === null ? "" : ` (did you mean ${guess}?)`}`;
}
