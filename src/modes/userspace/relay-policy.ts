// Which relay each Frontend of a ServicePort leads to, and from which pool a client is served there.
import type { FamilySettings } from "../../config/resolve/settings.ts";
import { type Address, type Cidr, contains, isLoopback } from "../../model/address.ts";
import { anyContains } from "../../model/networks.ts";
import type { ServicePort } from "../../model/snapshot.ts";
import type { Pools } from "../../routing/pools.ts";
import type { PortRoutes, Route } from "../../routing/routes.ts";

/**
 * A relay sees its client but not where the client went, so Frontends that treat clients differently need relays of
 * their own. cluster, local: one pool for all. external: this node and its pods have the whole cluster, others what
 * is on this node. guarded: the same, or the whole cluster, for allowed sources only.
 */
export type RelayPolicy = "cluster" | "local" | "external" | "guarded";

export type PoolName = Exclude<keyof Pools, "anyUsable">;

/** The policies of the relays a ServicePort needs: mostly one. None where there are no relays for its protocol. */
export function policiesOf({ port, routes }: PortRoutes): ReadonlySet<RelayPolicy> {
  return new Set(port.protocol === "sctp" ? [] : routes.map((route) => policyOf(port, route)));
}

/** Depends on policies only, so that a relay stays open while endpoints come and go. */
export function policyOf(port: ServicePort, { frontend, allowed }: Route): RelayPolicy {
  if (allowed !== null) return "guarded";
  if (frontend.kind === "clusterIP") return port.internalPolicy;
  return port.externalPolicy === "local" ? "external" : "cluster";
}

/** What distinguishes the clients of a ServicePort. */
export type Guard = {
  readonly externalPolicy: ServicePort["externalPolicy"];
  /** Sources that may use its guarded relay. */
  readonly allowed: readonly Cidr[];
};

export function guardOf({ port, routes }: PortRoutes): Guard {
  return {
    externalPolicy: port.externalPolicy,
    allowed: routes.find(({ allowed }) => allowed !== null)?.allowed ?? [],
  };
}

/** The pool that serves a client; null: it is not let in. */
export function poolFor(
  policy: RelayPolicy,
  client: Address,
  guard: Guard,
  settings: FamilySettings,
): PoolName | null {
  switch (policy) {
    case "cluster":
    case "local":
      return policy;
    case "external":
      return startsHere(client, settings) ? "cluster" : "local";
    case "guarded": {
      if (!anyContains(guard.allowed, client)) return null;
      return guard.externalPolicy === "local" ? poolFor("external", client, guard, settings) : "cluster";
    }
  }
}

/** Of this node, or of one of its pods as far as its address shows: a relay does not see interfaces. */
function startsHere(client: Address, { detector, localAddresses }: FamilySettings): boolean {
  if (isLoopback(client) || localAddresses.includes(client)) return true;
  return detector.kind === "cidr" && contains(detector.cidr, client);
}
