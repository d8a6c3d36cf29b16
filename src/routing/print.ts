// Routes as text that reads like a manual, sorted; same Routes, same bytes.
import { endpointKey, portLabel } from "../model/snapshot.ts";
import { conflicts } from "./conflicts.ts";
import type { Pool } from "./pools.ts";
import { printFrontend } from "./print-frontend.ts";
import type { PortRoutes, Route, Routes, Target } from "./routes.ts";

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
function printRoute(
  { frontend, from: { pod, node, outside }, allowed }: Route,
  printed: (pool: Pool) => string,
): string {
  const only = allowed === null ? "" : `  only from ${allowed.join(", ")}`;
  const head = `  ${printFrontend(frontend)}${only}\n`;
  const podFate = printTarget(pod, printed);
  const nodeFate = printTarget(node, printed);
  const outsideFate = outside === node ? nodeFate : printTarget(outside, printed);
  if (podFate === nodeFate)
    return podFate === outsideFate
      ? `${head}    everybody     ${podFate}\n`
      : `${head}    pod, node     ${podFate}\n    outside       ${outsideFate}\n`;
  if (nodeFate === outsideFate) return `${head}    pod           ${podFate}\n    node, outside ${nodeFate}\n`;
  if (podFate === outsideFate) return `${head}    pod, outside  ${podFate}\n    node          ${nodeFate}\n`;
  return `${head}    pod           ${podFate}\n    node          ${nodeFate}\n    outside       ${outsideFate}\n`;
}

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
