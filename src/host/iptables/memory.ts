// Tables in memory that accept and refuse Patches like the kernel.
import { savedRule } from "../../plan/iptables/text.ts";
import type {
  ChainName,
  HostTables,
  IptablesPatch,
  Rule,
  Step,
  TableName,
} from "../../plan/iptables/types.ts";
import { HostError } from "../error.ts";

/** An unmodified host: the built-in chains, empty. */
export function freshTables(family: HostTables["family"]): HostTables {
  const builtIn: Record<TableName, readonly ChainName[]> = {
    filter: ["INPUT", "FORWARD", "OUTPUT"],
    nat: ["PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"],
    mangle: ["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"],
  };
  const tables = Object.entries(builtIn).map(
    ([table, chains]) => [table as TableName, new Map(chains.map((name) => [name, []]))] as const,
  );
  return { family, tables: new Map(tables) };
}

/** The tables after a Patch. Each Step takes effect as a whole or throws; Steps before it stay. */
export function applyInMemory(have: HostTables, patch: IptablesPatch): HostTables {
  const tables = new Map(have.tables);
  for (const step of patch.steps) tables.set(step.table, applyStep({ ...have, tables }, step));
  return { ...have, tables };
}

type Chains = Map<ChainName, readonly string[]>;

function applyStep(have: HostTables, step: Step): Chains {
  const chains: Chains = new Map(have.tables.get(step.table));
  const text = (rule: Rule) => {
    if (rule.target.kind === "jump") known(chains, rule.target.chain);
    return savedRule(rule, have.family);
  };
  for (const { name } of step.write) chains.set(name, []);
  for (const name of step.doom) chains.set(name, []);
  for (const { name, rules } of step.write) chains.set(name, rules.map(text));
  for (const { chain, rule } of step.remove) {
    const lines = [...known(chains, chain)];
    const at = lines.indexOf(text(rule));
    if (at < 0) throw new HostError("refused", `Cannot delete a rule of ${chain}: no such rule`);
    lines.splice(at, 1);
    chains.set(chain, lines);
  }
  for (const { chain, rule } of step.prepend) chains.set(chain, [text(rule), ...known(chains, chain)]);
  for (const { chain, rule } of step.append) chains.set(chain, [...known(chains, chain), text(rule)]);
  for (const name of step.doom) {
    if (isReferenced(chains, name)) throw new HostError("refused", `Cannot delete ${name}: it is in use`);
    chains.delete(name);
  }
  return chains;
}

function known(chains: Chains, name: ChainName): readonly string[] {
  const lines = chains.get(name);
  if (lines === undefined) throw new HostError("refused", `There is no chain ${name}`);
  return lines;
}

function isReferenced(chains: Chains, name: ChainName): boolean {
  return [...chains.values()].some((lines) => lines.some((line) => line.endsWith(`-j ${name}`)));
}
