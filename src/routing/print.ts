// Routes as text that reads like a manual, sorted; same Routes, same bytes.
import type { Cidr } from "../model/address.ts";
import { endpointKey, portLabel } from "../model/snapshot.ts";
import { conflicts } from "./conflicts.ts";
import type { Pool } from "./pools.ts";
import { printFrontend } from "./print-frontend.ts";
import type { PortRoutes, Route, Routes, Target } from "./routes.ts";

/** `alreadyPrinted`: lines of the other family; a NodePort is the same in both. */
export function printRoutes(routes: Routes, alreadyPrinted = new Set<string>()): string {
  const keys = [...routes.ports.keys()].sort();
  const printed = printedOnce();
  return keys.map((key) => printPort(routes, routes.ports.get(key)!, printed, alreadyPrinted)).join("\n");
}

function printPort(
  routes: Routes,
  routed: PortRoutes,
  printed: PrintPool,
  alreadyPrinted: Set<string>,
): string {
  const { port } = routed;
  let text = `${portLabel(port)}  ${port.protocol}${propertiesOf(routed)}\n`;
  for (const route of routed.routes) text += printRoute(route, printed);
  for (const { message } of conflicts(routes, routed)) {
    const line = `  ! ${message}\n`;
    if (!alreadyPrinted.has(line)) text += line;
    alreadyPrinted.add(line);
  }
  return text;
}

function propertiesOf({ port: { internalPolicy, externalPolicy, affinity } }: PortRoutes): string {
  let properties = internalPolicy === "local" ? ", internalTrafficPolicy Local" : "";
  if (externalPolicy === "local") properties += ", externalTrafficPolicy Local";
  if (affinity !== null) properties += `, sticky for ${affinity.seconds} s`;
  return properties === "" ? "" : `  (${properties.slice(2)})`;
}

function printRoute({ frontend, from, allowed }: Route, printed: PrintPool): string {
  const only = allowed === null ? "" : `  only from ${printSources(allowed)}`;
  return `  ${printFrontend(frontend)}${only}\n${printTargets(from, printed)}`;
}

/** Senders that are handled alike share a line. */
function printTargets({ pod, node, outside }: Route["from"], printed: PrintPool): string {
  const line = (who: string, target: Target) => `    ${who} ${printTarget(target, printed)}\n`;
  const isNodeLikePod = isSameTarget(pod, node, printed);
  if (isSameTarget(pod, outside, printed))
    return isNodeLikePod
      ? line("all senders  ", pod)
      : line("pod, outside ", pod) + line("node         ", node);
  if (isNodeLikePod) return line("pod, node    ", pod) + line("outside      ", outside);
  if (isSameTarget(node, outside, printed)) return line("pod          ", pod) + line("node, outside", node);
  return line("pod          ", pod) + line("node         ", node) + line("outside      ", outside);
}

function isSameTarget(a: Target, b: Target, printed: PrintPool): boolean {
  if (a.kind !== "forward" || b.kind !== "forward") return a.kind === b.kind;
  return a.masquerade === b.masquerade && printed(a.pool) === printed(b.pool);
}

/** All of a short list; of a long one the beginning, since every address of a Service repeats it. */
function printSources(allowed: readonly Cidr[]): string {
  const shown = allowed.slice(0, mostSources).join(", ");
  return allowed.length <= mostSources ? shown : `${shown} and ${allowed.length - mostSources} more`;
}

const mostSources = 100;

export function printTarget(target: Target, printed = printPool): string {
  if (target.kind !== "forward") return target.kind;
  return `forward ${printed(target.pool)}${target.masquerade ? " masquerade" : ""}`;
}

type PrintPool = (pool: Pool) => string;

/** Most targets of a ServicePort share their endpoints, of which there may be many. */
function printedOnce(): PrintPool {
  let last: Pool | null = null;
  let text = "";
  return (pool) => {
    if (pool !== last) text = printPool(pool);
    last = pool;
    return text;
  };
}

function printPool({ endpoints }: Pool): string {
  return endpoints.map(endpointKey).join(", ");
}
