// How the packet-filter tables of a host differ from a Plan, one line per difference; changes nothing.
import { detectBackEnd } from "../../../host/iptables/back-end.ts";
import { starter } from "../../../host/iptables/command.ts";
import { openIptablesHost } from "../../../host/iptables/host.ts";
import { adopt } from "../../../plan/iptables/adopt.ts";
import { printPatch } from "../../../plan/iptables/print.ts";
import type { IptablesPlan } from "../../../plan/iptables/types.ts";
import type { HostQuery } from "../../mode.ts";
import { compile } from "../compile.ts";
import { existingCounters } from "./setup.ts";

export async function iptablesDifferences(query: HostQuery): Promise<string[]> {
  const plan = compile(null, await query.routes(), await existingCounters(query.at));
  return tableDifferences(plan, query);
}

export async function tableDifferences(
  plan: IptablesPlan,
  { at, signal }: Pick<HostQuery, "at" | "signal">,
): Promise<string[]> {
  const host = await openIptablesHost(plan.family, await detectBackEnd(starter(at)), signal);
  const patch = printPatch(adopt(await host.read(signal), plan));
  return patch.split("\n").filter((line) => /^[-:]/.test(line));
}
