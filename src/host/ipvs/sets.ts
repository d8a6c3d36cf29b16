// IP sets through the `ipset` program: read with `save`, changed with one `restore`.
import type { Family } from "../../model/address.ts";
import type { HeldSet, Operation, SetName } from "../../plan/ipvs/types.ts";
import { HostError } from "../error.ts";
import { type Finished, run, type Start } from "../iptables/command.ts";
import type { Applied, Failure, Numbered } from "./applied.ts";

export type SetOperation = Extract<Operation, { readonly kind: `${string} set` | `${string} entry` }>;

const program = "ipset";

/** The sets of this family, by their names: a bitmap itself has no family. */
export async function readSets(
  start: Start,
  family: Family,
  signal?: AbortSignal,
): Promise<ReadonlyMap<SetName, HeldSet>> {
  const listing = await run(start, program, ["save"], "", signal);
  if (listing.code !== 0) throw failure("read IP sets", "save", listing);
  return parseSets(listing.stdout, family);
}

type Growing = HeldSet & { readonly entries: Set<string> };

export function parseSets(saved: string, family: Family): ReadonlyMap<SetName, HeldSet> {
  const sets = new Map<SetName, Growing>();
  for (const line of saved.split("\n")) {
    const [verb, name = "", what = "", ...options] = line.split(" ");
    if (familyOfSet(name) !== family) continue;
    if (verb === "create") sets.set(name, emptySet(what, options));
    else if (verb === "add") sets.get(name)?.entries.add(what);
  }
  return sets;
}

function familyOfSet(name: SetName): Family | null {
  if (name.startsWith("KUBE-6-")) return "ipv6";
  return name.startsWith("KUBE-") ? "ipv4" : null;
}

function emptySet(type: string, options: readonly string[]): Growing {
  const option = (name: string) => {
    const at = options.indexOf(name);
    return at < 0 ? null : (options[at + 1] ?? null);
  };
  const family = option("family");
  const maxElements = option("maxelem");
  return {
    type,
    family: family === null ? null : family === "inet6" ? "ipv6" : "ipv4",
    maxElements: maxElements === null ? null : Number(maxElements),
    entries: new Set(),
  };
}

/**
 * `ipset restore` stops at the first line that is refused, and the lines before it may be applied or not. It is run again
 * without that line: every other line may be repeated.
 */
export async function applyToSets(
  start: Start,
  operations: readonly Numbered<SetOperation>[],
): Promise<Applied> {
  const failures: Failure[] = [];
  let remaining = operations;
  let [messages, bytes] = [0, 0];
  while (remaining.length > 0) {
    const input = `${remaining.map(({ operation }) => lineOf(operation)).join("\n")}\n`;
    const end = await run(start, program, ["restore"], input);
    messages += remaining.length;
    bytes += input.length;
    if (end.code === 0) break;
    const { line, text } = refusedLine(end, remaining.length);
    const refused = remaining[line]!;
    const lost = new Set([refused.at, ...hopeless(remaining, line, text)]);
    const isOut = ({ at }: Numbered<SetOperation>) => lost.has(at);
    if (!isNoMatter(refused.operation, text))
      for (const { at } of remaining.filter(isOut)) failures.push({ operation: at, errno: "", reason: text });
    remaining = remaining.filter((other) => !isOut(other));
  }
  return { messages, bytes, failures: failures.sort((a, b) => a.operation - b.operation) };
}

function lineOf(operation: SetOperation): string {
  switch (operation.kind) {
    case "create set": {
      const { name, type, family } = operation.set;
      const shape =
        type === "bitmap:port"
          ? "range 0-65535"
          : `family ${family === "ipv4" ? "inet" : "inet6"} hashsize 1024 maxelem 65536`;
      return `create ${name} ${type} ${shape} -exist`;
    }
    case "destroy set":
      return `destroy ${operation.set}`;
    case "add entry":
      return `add ${operation.set} ${operation.entry} -exist`;
    case "delete entry":
      return `del ${operation.set} ${operation.entry} -exist`;
  }
}

function refusedLine(end: Finished, lines: number): { readonly line: number; readonly text: string } {
  const refused = /Error in line (\d+): (.*)/.exec(end.stderr);
  const line = Number(refused?.[1] ?? 0) - 1;
  if (line < 0 || line >= lines) throw failure(`apply ${lines} changes of IP sets`, "restore", end);
  return { line, text: refused![2]! };
}

/** A set that is full or missing also refuses the entries that directly follow. */
function hopeless(operations: readonly Numbered<SetOperation>[], line: number, text: string): number[] {
  const { kind, set } = operations[line]!.operation;
  if (!kind.endsWith("entry") || !/is full|does not exist/.test(text)) return [];
  const rest = operations.slice(line + 1);
  const end = rest.findIndex(({ operation }) => operation.kind !== kind);
  const alike = end < 0 ? rest : rest.slice(0, end);
  return alike.filter(({ operation }) => operation.set === set).map(({ at }) => at);
}

/** To destroy what is gone. */
function isNoMatter(operation: SetOperation, text: string): boolean {
  return operation.kind === "destroy set" && text.includes("does not exist");
}

function failure(what: string, verb: string, { code, stderr }: Finished): HostError {
  const text = stderr.trim();
  return new HostError("unavailable", `Cannot ${what}: ${program} ${verb} exited with ${code}: ${text}`, {
    text,
  });
}
