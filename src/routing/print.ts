// Routes as text that reads like a manual, sorted; same Routes, same bytes.
import { endpointKey, portLabel } from "../model/snapshot.ts";
import { conflicts } from "./conflicts.ts";
import { printFrontend } from "./print-frontend.ts";
import type { PortRoutes, Route, Routes, Sender, Target } from "./routes.ts";

/** `told`: what the other family said already; a NodePort is the same in both. */
export function printRoutes(routes: Routes, told = new Set<string>()): string {
  const keys = [...routes.ports.keys()].sort();
  return keys.map((key) => printPort(routes, routes.ports.get(key)!, told)).join("\n");
}

function printPort(routes: Routes, routed: PortRoutes, told: Set<string>): string {
  const { port } = routed;
  const problems = conflicts(routes, routed).map(({ message }) => `  ! ${message}`);
  const lines = [
    `${portLabel(port)}  ${port.protocol}${traitsOf(routed)}`,
    ...routed.routes.flatMap(printRoute),
    ...problems.filter((line) => !told.has(line)),
  ];
  for (const line of problems) told.add(line);
  return `${lines.join("\n")}\n`;
}

function traitsOf({ port }: PortRoutes): string {
  const traits = [
    ...(port.internalPolicy === "local" ? ["internalTrafficPolicy Local"] : []),
    ...(port.externalPolicy === "local" ? ["externalTrafficPolicy Local"] : []),
    ...(port.affinity === null ? [] : [`sticky for ${port.affinity.seconds} s`]),
  ];
  return traits.length === 0 ? "" : `  (${traits.join(", ")})`;
}

/** Senders that meet the same fate share a line. */
function printRoute({ frontend, from, allowed }: Route): string[] {
  // Most share their Target too, whose many endpoints are then printed once.
  const fates = new Map<Target, string>();
  for (const sender of senders)
    if (!fates.has(from[sender])) fates.set(from[sender], printTarget(from[sender]));
  const lines = [
    `  ${printFrontend(frontend)}${allowed === null ? "" : `  only from ${allowed.join(", ")}`}`,
  ];
  for (const fate of new Set(fates.values())) {
    const alike = senders.filter((sender) => fates.get(from[sender]) === fate);
    lines.push(`    ${(alike.length === 3 ? "everybody" : alike.join(", ")).padEnd(13)} ${fate}`);
  }
  return lines;
}

const senders: readonly Sender[] = ["pod", "node", "outside"];

export function printTarget(target: Target): string {
  if (target.kind !== "forward") return target.kind;
  const backends = target.pool.endpoints.map(endpointKey).join(", ");
  return `forward ${backends}${target.masquerade ? " masquerade" : ""}`;
}
