// What userspace mode makes of a packet: where other modes lead it on, a relay of this node takes it.
import { type Address, isLoopback } from "../../model/address.ts";
import { type Decision, decide, type Packet } from "../../routing/decide.ts";
import type { Routes } from "../../routing/routes.ts";
import { userspaceBehavior } from "./behavior.ts";

export type RelayedDecision = Omit<Decision, "outcome"> & { readonly outcome: RelayedOutcome };

/** close: the relay accepts it and has no endpoint for it; TCP connections are closed immediately, datagrams are not answered. */
export type RelayedOutcome = Decision["outcome"] | { readonly kind: "close" };

export function decideRelayed(routes: Routes, packet: Packet): RelayedDecision {
  const decision = decide(routes, userspaceBehavior, asSeen(packet, routes.settings));
  if (decision.hit === null && isHeld(routes, packet)) {
    return because(decision, { kind: "close" }, "NodePorts do not answer there, but their ports are held");
  }
  const passed = passReason(decision, packet, routes);
  if (passed !== null) return because(decision, { kind: "pass" }, passed);
  switch (decision.outcome.kind) {
    case "pass":
      return decision;
    case "reject":
    case "drop":
      return because(decision, { kind: "close" }, "a relay accepts the packet, but has no endpoint for it");
    case "forward": {
      const choices = decision.outcome.choices.map((choice) => ({ ...choice, masquerade: true }));
      return because(
        decision,
        { kind: "forward", choices },
        "a relay of this node connects: it is seen instead",
      );
    }
  }
}

/** A relay sees the address of its client, not the interface that a pod came in through. */
function asSeen(packet: Packet, { detector }: Routes["settings"]): Packet {
  if (packet.from.origin !== "pod" || detector.kind === "cidr") return packet;
  return { ...packet, from: { ...packet.from, origin: "elsewhere" } };
}

/** A NodePort is held on every address, so that no other program takes its port. */
function isHeld({ claims, settings }: Routes, { to }: Packet): boolean {
  if (to.protocol === "sctp" || !claims.has(`node/${to.protocol}/${to.port}`)) return false;
  return isOwn(settings, to.address);
}

function isOwn({ localAddresses }: Routes["settings"], address: Address): boolean {
  return isLoopback(address) || localAddresses.includes(address);
}

/** Why no rule leads this packet to a relay; null: one does. */
function passReason({ hit }: Decision, { from, to }: Packet, { settings }: Routes): string | null {
  if (hit === null) return null;
  if (to.protocol === "sctp") return "there are no relays for SCTP";
  if (hit.route.frontend.kind === "externalIP" && from.origin === "node" && !isOwn(settings, to.address)) {
    return "the node's own packets to an external IP are handled only where the node holds that address";
  }
  return null;
}

function because(decision: Decision, outcome: RelayedOutcome, reason: string): RelayedDecision {
  return { ...decision, outcome, because: [...decision.because, reason] };
}
