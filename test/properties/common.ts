// Shared by the properties of all modes: generated clusters, their histories, and that a Plan agrees with decide().
import fc from "fast-check";
import { expect } from "vitest";
import type { ModeName } from "../../src/config/modes.ts";
import type { Family } from "../../src/model/address.ts";
import { type Endpoint, endpointKey, type PortKey, type ServicePort } from "../../src/model/snapshot.ts";
import { modes } from "../../src/modes/index.ts";
import type { Mode } from "../../src/modes/mode.ts";
import type { Packet } from "../../src/routing/decide.ts";
import { type Routes, route } from "../../src/routing/routes.ts";
import { packet, servicePort, settings, snapshotOf } from "../clusters.ts";

export function generatedCluster(family: Family) {
  return fc.record({
    ports: fc.array(servicePort(family), { maxLength: 8 }),
    settings: settings(family),
  });
}

/** Steps, each with some ServicePorts that come or go, mostly under the first of two settings. */
export function generatedHistory(family: Family) {
  return fc.record({
    settings: fc.array(settings(family), { minLength: 2, maxLength: 2 }),
    steps: fc.array(
      fc.record({
        changes: fc.array(fc.tuple(servicePort(family), fc.boolean()), { maxLength: 3 }),
        setting: fc.constantFrom(0, 0, 0, 0, 1),
      }),
      { minLength: 1, maxLength: 6 },
    ),
  });
}

/** Surroundings in which a packet is walked. */
type Around = { readonly localAddresses: readonly string[]; readonly podInterface: string };

type Walk = {
  readonly outcome:
    | {
        readonly kind: "forward";
        readonly backend: Pick<Endpoint, "address" | "port">;
        readonly masquerade: boolean;
      }
    | { readonly kind: "pass" | "reject" | "drop" | "close" };
};

export type WalkedMode = {
  readonly mode: ModeName;
  /** Every way that a packet may take through the mode's Plan of these Routes. */
  readonly walker: (routes: Routes) => (packet: Packet, around: Around) => readonly Walk[];
};

/** Every packet to every generated cluster takes the ways that are decided for the mode, and no other. */
export function expectDecidedResults(family: Family, { mode, walker }: WalkedMode, numRuns: number): void {
  const packets = fc.array(packet(family), { minLength: 1, maxLength: 12 });
  const property = fc.property(generatedCluster(family), packets, ({ ports, settings }, sent) => {
    const routes = route(null, snapshotOf(ports, family), settings);
    const walk = walker(routes);
    for (const each of sent) {
      const walks = walk(each, { localAddresses: settings.localAddresses, podInterface: "br0" });
      const walked = walks.map(({ outcome }) => outcomeText(outcome)).sort();
      expect({ packet: each, result: walked }).toEqual({
        packet: each,
        result: decisionTexts(modes[mode].decide(routes, each)),
      });
    }
  });
  fc.assert(property, { numRuns });
}

/** Adds and removes ServicePorts; returns the affected keys. */
export function change(
  ports: Map<PortKey, ServicePort>,
  changes: readonly (readonly [port: ServicePort, remove: boolean])[],
): Set<PortKey> {
  for (const [port, remove] of changes) {
    if (remove) ports.delete(port.key);
    else ports.set(port.key, port);
  }
  return new Set(changes.map(([{ key }]) => key));
}

function outcomeText(outcome: Walk["outcome"]): string {
  return outcome.kind === "forward" ? forwardText(outcome.backend, outcome.masquerade) : outcome.kind;
}

function decisionTexts({ outcome }: ReturnType<Mode["decide"]>): string[] {
  if (outcome.kind !== "forward") return [outcome.kind];
  return outcome.choices.map(({ endpoint, masquerade }) => forwardText(endpoint, masquerade)).sort();
}

function forwardText(to: Pick<Endpoint, "address" | "port">, masquerade: boolean): string {
  return `${endpointKey(to)}${masquerade ? " masquerade" : ""}`;
}
