// What iptables mode would write, as iptables-save prints it and as JSON.
import { chainsOf } from "../../plan/iptables/plan.ts";
import { print } from "../../plan/iptables/print.ts";
import { type IptablesPlan, tableNames } from "../../plan/iptables/types.ts";
import type { Routes } from "../../routing/routes.ts";
import type { Preview } from "../mode.ts";
import { compile } from "./compile.ts";
import type { Counters } from "./foundation.ts";

/** The packet counters that most kernels have. */
export const defaultCounters: Counters = { invalidDropped: true, localhostNodePorts: true };

export function previewIptables(routes: Routes): Preview {
  const plan = compile(null, routes, defaultCounters);
  return { text: () => underFamily(routes, print(plan)), json: () => chainsJson(plan) };
}

export function underFamily({ settings }: Routes, text: string): string {
  return `# ${settings.family}\n${text}`;
}

export function chainsJson(plan: IptablesPlan): object {
  const { jumps, lastJumps = [] } = plan.foundation;
  const chains = tableNames.map((table) => [table, chainsOf(plan, table)] as const);
  return { jumps: [...jumps, ...lastJumps], ...Object.fromEntries(chains) };
}
