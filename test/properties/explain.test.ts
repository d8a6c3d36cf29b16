// Properties of explain on generated clusters: a Trace agrees with a walk through the Plan of each mode, and names every endpoint
// without a reason.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { printTrace } from "../../src/explain/print.ts";
import { type Trace, trace } from "../../src/explain/trace.ts";
import { type Endpoint, endpointKey } from "../../src/model/snapshot.ts";
import { modes } from "../../src/modes/index.ts";
import { compile as compileIptables } from "../../src/modes/iptables/compile.ts";
import { rulesetOf, walkIptables } from "../../src/modes/iptables/walk.ts";
import { compile as compileNftables } from "../../src/modes/nftables/compile.ts";
import { walkNftables } from "../../src/modes/nftables/walk.ts";
import { unfold } from "../../src/plan/nftables/plan.ts";
import { type Routes, route } from "../../src/routing/routes.ts";
import { packet, servicePort, settings, snapshotOf } from "../clusters.ts";

describe.each(["ipv4", "ipv6"] as const)("explain, %s", (family) => {
  const cluster = fc.record({
    ports: fc.array(servicePort(family), { minLength: 1, maxLength: 6 }),
    settings: settings(family),
  });
  const packets = fc.array(packet(family), { minLength: 5, maxLength: 10 });

  it.each(["nftables", "iptables"] as const)("agrees with the walk of a packet in %s mode", (mode) => {
    fc.assert(
      fc.property(cluster, packets, ({ ports, settings }, sent) => {
        const routes = route(null, snapshotOf(ports, family), settings);
        const walk = mode === "nftables" ? nftablesWalk(routes) : iptablesWalk(routes);
        for (const each of sent) {
          const traced = trace(modes[mode], routes, each);
          expect({ packet: each, result: resultOf(traced) }).toEqual({ packet: each, result: walk(each) });
        }
      }),
      { numRuns: 150 },
    );
  });

  it("names a probability or a reason for every endpoint of the Service", () => {
    fc.assert(
      fc.property(cluster, packets, ({ ports, settings }, sent) => {
        const routes = route(null, snapshotOf(ports, family), settings);
        for (const each of sent) {
          const traced = trace(modes.nftables, routes, each);
          if (traced.outcome !== "forward") continue;
          const chances = traced.candidates.reduce((sum, { probability }) => sum + probability, 0);
          expect(chances).toBeCloseTo(1);
          const port = [...routes.ports.values()].find(
            ({ port: { key } }) => key === keyOf(traced, routes),
          )!.port;
          const named = [...traced.candidates, ...traced.leftOut].map(({ endpoint }) => endpoint).sort();
          expect(named).toEqual(port.endpoints.map(endpointKey).sort());
          for (const { endpoint, reason } of traced.leftOut) {
            const left = port.endpoints.find((one) => endpointKey(one) === endpoint)!;
            expect({ reason, fits: fits(reason, left, settings.nodeName) }).toEqual({ reason, fits: true });
          }
          expect(printTrace(traced)).toContain(traced.service);
        }
      }),
      { numRuns: 150 },
    );
  });
});

/** Whether a reason is true of the endpoint it is given for. */
function fits(reason: string, { state, nodeName, zoneHints, nodeHints }: Endpoint, here: string): boolean {
  if (reason.startsWith("not ready")) return state === "unready";
  if (reason.startsWith("terminating")) return state === "draining";
  if (reason.startsWith("not on this node")) return nodeName !== here;
  if (reason.startsWith("hinted for node"))
    return state === "ready" && nodeHints.length > 0 && !nodeHints.includes(here);
  return reason.startsWith("hinted for zone") && state === "ready" && zoneHints.length > 0;
}

function nftablesWalk(routes: Routes) {
  const table = unfold(compileNftables(null, routes));
  const around = { localAddresses: routes.settings.localAddresses, podInterface: "br0" };
  return (sent: Parameters<typeof walkNftables>[1]) => texts(walkNftables(table, sent, around));
}

function iptablesWalk(routes: Routes) {
  const rules = rulesetOf(compileIptables(null, routes, { invalidDropped: true, localhostNodePorts: true }));
  const around = { localAddresses: routes.settings.localAddresses, podInterface: "br0" };
  return (sent: Parameters<typeof walkIptables>[1]) => texts(walkIptables(rules, sent, around));
}

function texts(
  walks: readonly { readonly outcome: ReturnType<typeof walkNftables>[number]["outcome"] }[],
): string[] {
  return walks
    .map(({ outcome }) =>
      outcome.kind === "forward"
        ? `${endpointKey(outcome.backend)}${outcome.masquerade ? " masquerade" : ""}`
        : outcome.kind,
    )
    .sort();
}

function resultOf({ outcome, candidates }: Trace): string[] {
  if (outcome !== "forward") return [outcome];
  return candidates.map(({ endpoint, masquerade }) => `${endpoint}${masquerade ? " masquerade" : ""}`).sort();
}

function keyOf({ service, packet: { to } }: Trace, routes: Routes): string | undefined {
  return [...routes.ports.values()].find(
    ({ port, routes: each }) =>
      `${port.service}${port.portName === "" ? "" : `:${port.portName}`}` === service &&
      port.protocol === to.protocol &&
      each.some(({ frontend }) => frontend.port === to.port),
  )?.port.key;
}
