// The answer of `whatif` as text: Services without an endpoint first, then shares before and after, by where traffic comes from.
import { printableLine } from "../model/printable.ts";
import type { GroupOutlook, PortName, PortOutlook, Share, WhatIf } from "./what-if.ts";

/** Of a longer list, the first. */
const most = 20;

export function printWhatIf({ withoutEndpoint, changes }: WhatIf): string {
  if (changes.length === 0) return "No traffic is distributed differently.\n";
  const lost = withoutEndpoint.map((each) => `  ${nameOf(each)}`);
  const head =
    lost.length === 0 ? [] : ["NO ENDPOINT WOULD BE LEFT: connections are rejected", ...limited(lost), ""];
  const lines = [...head, ...changes.flatMap((each, i) => [...(i === 0 ? [] : [""]), ...printPort(each)])];
  return `${lines.map(printableLine).join("\n")}\n`;
}

function nameOf({ port, protocol, family }: PortName): string {
  return `${port}  ${protocol}, ${family}`;
}

const signs = { added: "+", removed: "-", changed: "~" } as const;

function printPort(outlook: PortOutlook): string[] {
  const { kind, usable, from } = outlook;
  const counts = {
    added: usable.after,
    removed: usable.before,
    changed: `${usable.before} → ${usable.after}`,
  };
  return [
    `${signs[kind]} ${nameOf(outlook)}: ${counts[kind]} usable endpoints`,
    ...(kind === "changed" && from.length === 0 ? ["    the nodes that remain do not use them"] : []),
    ...limited(outlook.from.map(printGroup)).flat(),
  ];
}

function printGroup({ nodes, zones, policy, before, after, hintsLost, shares }: GroupOutlook): string[] {
  const where = zones.length === 0 ? "" : ` (zone ${limited(zones).join(", ")})`;
  const reason = before === after ? [] : [`      ${before} → ${after}`];
  const hints = hintsLost
    ? ["      ! topology hints no longer hold here: traffic leaves the zone or node"]
    : [];
  return [
    `    from ${limited(nodes).join(", ")}${where}, policy ${policy}`,
    ...reason,
    ...hints,
    ...limited(shares.map(printShare)),
  ];
}

function printShare({ endpoint, node, before, after }: Share): string {
  const on = node === "" ? "" : ` on ${node}`;
  return `      ${percent(before)} → ${percent(after)}  ${endpoint}${on}`;
}

function percent(share: number): string {
  return (share === 0 ? "–" : `${(share * 100).toFixed(1)} %`).padStart(7);
}

function limited<T>(items: readonly T[]): readonly (T | string)[] {
  return items.length <= most ? items : [...items.slice(0, most), `      and ${items.length - most} more`];
}
