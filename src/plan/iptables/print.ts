// A Plan as `iptables-save` would list it, and a Patch as input of `iptables-restore`.
import type { PortKey } from "../../model/snapshot.ts";
import { chainsOf } from "./plan.ts";
import { ruleInput, savedRule } from "./text.ts";
import { type IptablesPatch, type IptablesPlan, type Step, type TableName, tableNames } from "./types.ts";

/** The whole Plan as `iptables-save` would show it on a host that holds nothing else. */
export function print(plan: IptablesPlan): string {
  return tableNames.map((table) => `${tableLines(plan, table).join("\n")}\n`).join("");
}

/** One line of input, and the ServicePort it is for; null: for all. */
export type InputLine = { readonly text: string; readonly owner: PortKey | null };

/** Input of `iptables-restore --noflush` that carries out a Patch. */
export function inputLines(patch: IptablesPatch): InputLine[] {
  return patch.steps.flatMap(stepLines);
}

/** The same as one text. */
export function printPatch(patch: IptablesPatch): string {
  return inputLines(patch)
    .map(({ text }) => `${text}\n`)
    .join("");
}

function tableLines(plan: IptablesPlan, table: TableName): string[] {
  const chains = chainsOf(plan, table);
  const jumps = plan.foundation.jumps.filter((jump) => jump.table === table).reverse();
  const saved = (chain: string, rule: Parameters<typeof savedRule>[0]) =>
    `-A ${chain} ${savedRule(rule, plan.family)}`;
  return [
    `*${table}`,
    ...chains.map(({ name }) => `:${name} - [0:0]`),
    ...builtInChains.flatMap((name) =>
      jumps.filter(({ chain }) => chain === name).map(({ rule }) => saved(name, rule)),
    ),
    ...chains.flatMap(({ name, rules }) => rules.map((rule) => saved(name, rule))),
    "COMMIT",
  ];
}

const builtInChains = ["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"];

/** Chain lines first: each creates a chain, or empties it, before any rule can refer to it. */
function stepLines(step: Step): InputLine[] {
  const forAll = (text: string): InputLine => ({ text, owner: null });
  return [
    forAll(`*${step.table}`),
    ...step.write.map(({ name, owner }) => ({ text: `:${name} - [0:0]`, owner })),
    ...step.doom.map((name) => forAll(`:${name} - [0:0]`)),
    ...step.write.flatMap(({ name, rules, owner }) =>
      rules.map((rule) => ({ text: `-A ${name} ${ruleInput(rule)}`, owner })),
    ),
    ...step.remove.map(({ chain, rule, owner }) => ({ text: `-D ${chain} ${ruleInput(rule)}`, owner })),
    ...step.prepend.map(({ chain, rule, owner }) => ({ text: `-I ${chain} ${ruleInput(rule)}`, owner })),
    ...step.doom.map((name) => forAll(`-X ${name}`)),
    forAll("COMMIT"),
  ];
}
