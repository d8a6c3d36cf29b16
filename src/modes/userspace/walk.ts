// Walks a packet through the rules of userspace mode to a relay, and through the relay to endpoints.
import type { FamilySettings } from "../../config/resolve/settings.ts";
import { isLoopback } from "../../model/address.ts";
import type { Packet } from "../../routing/decide.ts";
import { type IptablesWalk, type Ruleset, walkIptables } from "../iptables/walk.ts";
import type { Surroundings } from "../walk.ts";
import { poolFor, type RelayPolicy } from "./relay-policy.ts";
import type { OpenRelays, RelayedPort } from "./relays.ts";

/** close: a socket of the node accepts it and has no endpoint for it. */
export type RelayedWalk = Omit<IptablesWalk, "outcome"> & {
  readonly outcome: IptablesWalk["outcome"] | { readonly kind: "close" };
  /** Which socket accepted it, as text; null: none did. */
  readonly socket: string | null;
};

/** Every way a new packet can go. */
export function walkRelayed(
  rules: Ruleset,
  relays: OpenRelays,
  packet: Packet,
  around: Surroundings,
  settings: FamilySettings,
): readonly RelayedWalk[] {
  const isOwn = (address: string) => isLoopback(address) || around.localAddresses.includes(address);
  return walkIptables(rules, packet, around).flatMap((walk): RelayedWalk[] => {
    const { outcome } = walk;
    if (outcome.kind === "pass" && isOwn(packet.to.address) && isHeld(relays, packet))
      return [{ ...walk, outcome: { kind: "close" }, socket: "held for a Service" }];
    if (outcome.kind !== "forward" || !isOwn(outcome.backend.address)) return [{ ...walk, socket: null }];
    return relayedTo(outcome.backend.port).map((more) => ({ ...walk, ...more }));
  });

  function relayedTo(port: number): Pick<RelayedWalk, "outcome" | "socket">[] {
    const relay = relayAt(relays, packet.to.protocol, port);
    if (relay === null) return [{ outcome: { kind: "reject" }, socket: `no socket listens on port ${port}` }];
    const { served, policy } = relay;
    const socket = `port ${port}, relay ${served.key} (${policy})`;
    const pool = poolFor(policy, packet.from.address, served.guard, settings);
    const backends = pool === null ? [] : served.pools[pool];
    if (backends.length === 0) return [{ outcome: { kind: "close" }, socket }];
    return backends.map((backend) => ({ outcome: { kind: "forward", backend, masquerade: true }, socket }));
  }
}

function isHeld({ held }: OpenRelays, { to: { address, protocol, port } }: Packet): boolean {
  return held.includes(`node/${protocol}/${port}`) || held.includes(`${address}/${protocol}/${port}`);
}

function relayAt(
  { ports }: OpenRelays,
  protocol: Packet["to"]["protocol"],
  port: number,
): { readonly served: RelayedPort; readonly policy: RelayPolicy } | null {
  for (const served of ports) {
    if (served.protocol !== protocol) continue;
    const [policy] = (Object.keys(served.doors) as RelayPolicy[]).filter(
      (each) => served.doors[each] === port,
    );
    if (policy !== undefined) return { served, policy };
  }
  return null;
}
