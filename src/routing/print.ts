// Routes as text that reads like a manual, sorted; same Routes, same bytes.
import { endpointKey, portLabel } from "../model/snapshot.ts";
import { conflicts } from "./conflicts.ts";
import type { Pool } from "./pools.ts";
import { printFrontend } from "./print-frontend.ts";
import type { PortRoutes, Route, Routes, Sender, Target } from "./routes.ts";

/** `told`: what the other family said already; a NodePort is the same in both. */
export function printRoutes(routes: Routes, told = new Set<string>()): string {
  const keys = [...routes.ports.keys()].sort();
  return keys.map((key) => printPort(routes, routes.ports.get(key)!, told)).join("\n");
}

function printPort(routes: Routes, routed: PortRoutes, told: Set<string>): string {
  const { port } = routed;
  let text = `${portLabel(port)}  ${port.protocol}${traitsOf(routed)}\n`;
  const printed = printedOnce();
  for (const route of routed.routes) text += printRoute(route, printed);
  for (const { message } of conflicts(routes, routed)) {
    const line = `  ! ${message}\n`;
    if (!told.has(line)) text += line;
    told.add(line);
  }
  return text;
}

function traitsOf({ port: { internalPolicy, externalPolicy, affinity } }: PortRoutes): string {
  let traits = internalPolicy === "local" ? ", internalTrafficPolicy Local" : "";
  if (externalPolicy === "local") traits += ", externalTrafficPolicy Local";
  if (affinity !== null) traits += `, sticky for ${affinity.seconds} s`;
  return traits === "" ? "" : `  (${traits.slice(2)})`;
}

/** Senders that meet the same fate share a line. */
function printRoute({ frontend, from, allowed }: Route, printed: (pool: Pool) => string): string {
  const only = allowed === null ? "" : `  only from ${allowed.join(", ")}`;
  let text = `  ${printFrontend(frontend)}${only}\n`;
  const fates = senders.map((sender) => printTarget(from[sender], printed));
  for (const [i, fate] of fates.entries()) {
    if (fates.indexOf(fate) !== i) continue;
    const alike = senders.filter((_, other) => fates[other] === fate);
    text += `    ${(alike.length === 3 ? "everybody" : alike.join(", ")).padEnd(13)} ${fate}\n`;
  }
  return text;
}

const senders: readonly Sender[] = ["pod", "node", "outside"];

export function printTarget(target: Target, printed = printPool): string {
  if (target.kind !== "forward") return target.kind;
  return `forward ${printed(target.pool)}${target.masquerade ? " masquerade" : ""}`;
}

/** Most fates of a ServicePort share their endpoints, of which there may be many. */
function printedOnce(): (pool: Pool) => string {
  const known = new Map<Pool, string>();
  return (pool) => {
    const text = known.get(pool) ?? printPool(pool);
    known.set(pool, text);
    return text;
  };
}

function printPool({ endpoints }: Pool): string {
  return endpoints.map(endpointKey).join(", ");
}
