// A Plan as `iptables-save` would list it, and a Patch as input of `iptables-restore`.
import type { PortKey } from "../../model/snapshot.ts";
import { chainsOf } from "./plan.ts";
import { areIndependent } from "./stage.ts";
import { ruleInput, savedRule } from "./text.ts";
import {
  type Chain,
  type IptablesPatch,
  type IptablesPlan,
  type Owned,
  type Step,
  type TableName,
  tableNames,
} from "./types.ts";

/** The whole Plan as `iptables-save` would show it on a host that holds nothing else. */
export function print(plan: IptablesPlan): string {
  return tableNames.map((table) => `${tableLines(plan, table).join("\n")}\n`).join("");
}

/** A Patch as input of `iptables-restore --noflush`. */
export function printPatch(patch: IptablesPatch): string {
  return [...patchTexts(patch)].join("");
}

/** The same in pieces, generated on demand: a huge load need not be in memory as a whole. */
export function* patchTexts(patch: IptablesPatch): Generator<string> {
  for (const step of patch.steps) {
    let text = "";
    writeStep(step, (line) => {
      text += `${line}\n`;
    });
    yield text;
  }
}

/** One line of such an input, and the ServicePort it is for; null: for all. */
export type InputLine = { readonly text: string; readonly owner: PortKey | null };

/** The same, line by line with its owners, to explain why a line was refused. */
export function inputLines(patch: IptablesPatch): InputLine[] {
  const lines: InputLine[] = [];
  for (const step of patch.steps) writeStep(step, (text, owner) => lines.push({ text, owner }));
  return lines;
}

function tableLines(plan: IptablesPlan, table: TableName): string[] {
  const chains = chainsOf(plan, table);
  const { jumps, lastJumps = [] } = plan.foundation;
  const placed = [...jumps.toReversed(), ...lastJumps].filter((jump) => jump.table === table);
  const saved = (chain: string, rule: Parameters<typeof savedRule>[0]) =>
    `-A ${chain} ${savedRule(rule, plan.family)}`;
  return [
    `*${table}`,
    ...chains.map(({ name }) => `:${name} - [0:0]`),
    ...builtInChains.flatMap((name) =>
      placed.filter(({ chain }) => chain === name).map(({ rule }) => saved(name, rule)),
    ),
    ...chains.flatMap(({ name, rules }) => rules.map((rule) => saved(name, rule))),
    "COMMIT",
  ];
}

const builtInChains = ["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"];

type Emit = (line: string, owner: PortKey | null) => void;

/** A chain line creates a chain, or empties it; no rule may lead to a chain that is not there yet. */
function writeStep({ table, write, doom, remove, prepend, append }: Step, emit: Emit): void {
  const declare = ({ name, owner }: Pick<Owned<Chain>, "name" | "owner">) => emit(`:${name} - [0:0]`, owner);
  const fill = ({ name, rules, owner }: Owned<Chain>) => {
    for (const rule of rules) emit(`-A ${name} ${ruleInput(rule)}`, owner);
  };
  emit(`*${table}`, null);
  const chains = write.toSorted((a, b) => (a.name < b.name ? 1 : -1));
  const oneByOne = areIndependent(chains);
  for (const chain of chains) {
    declare(chain);
    if (oneByOne) fill(chain);
  }
  // From the last name to the first: see `stage` for the reason.
  const doomed = doom.toSorted().reverse();
  for (const name of doomed) declare({ name, owner: null });
  if (!oneByOne) for (const chain of chains) fill(chain);
  for (const { chain, rule, owner } of remove) emit(`-D ${chain} ${ruleInput(rule)}`, owner);
  for (const { chain, rule, owner } of prepend) emit(`-I ${chain} ${ruleInput(rule)}`, owner);
  for (const { chain, rule, owner } of append) emit(`-A ${chain} ${ruleInput(rule)}`, owner);
  for (const name of doomed) emit(`-X ${name}`, null);
  emit("COMMIT", null);
}
