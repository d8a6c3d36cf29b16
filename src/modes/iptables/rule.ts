// Short names for conditions and targets, so that the rules of this mode read like a table.
import type { LocalDetector } from "../../config/resolve/settings.ts";

import type { Protocol } from "../../model/snapshot.ts";
import type { ChainName, Match, Place, Rule, Target } from "../../plan/iptables/types.ts";

/** Conditions, then what happens where all of them hold. */
export function rule(...parts: [...Match[], Target]): Rule {
  const target = parts.pop() as Target;
  return { match: parts as Match[], target };
}

export const comment = (text: string): Match => ({ kind: "comment", text });
/** One object for each protocol: thousands of rules share it. */
const ofProtocol: Readonly<Record<Protocol, Match>> = {
  tcp: { kind: "protocol", protocol: "tcp" },
  udp: { kind: "protocol", protocol: "udp" },
  sctp: { kind: "protocol", protocol: "sctp" },
};

export const proto = (protocol: Protocol): Match => ofProtocol[protocol];
export const from = (cidr: Place): Match => ({ kind: "source", cidr, not: false });
export const notFrom = (cidr: Place): Match => ({ kind: "source", cidr, not: true });
export const to = (cidr: Place): Match => ({ kind: "destination", cidr, not: false });
export const notTo = (cidr: Place): Match => ({ kind: "destination", cidr, not: true });
export const dport = (port: number): Match => ({ kind: "destinationPort", port });
export const marked = (mark: number): Match => ({ kind: "mark", mark, not: false });
export const unmarked = (mark: number): Match => ({ kind: "mark", mark, not: true });
export const tracked = (states: string): Match => ({ kind: "ctstate", states, not: false });
export const notTracked = (states: string): Match => ({ kind: "ctstate", states, not: true });
export const fromThisNode: Match = { kind: "localAddress", side: "src", not: false };
export const toThisNode: Match = { kind: "localAddress", side: "dst", not: false };
export const counted = (name: string): Match => ({ kind: "counter", name });

export const jump = (chain: ChainName): Target => ({ kind: "jump", chain });
export const accept: Target = { kind: "accept" };
export const drop: Target = { kind: "drop" };
export const reject: Target = { kind: "reject" };
export const returnToCaller: Target = { kind: "return" };
export const noTarget: Target = { kind: "none" };

/** Traffic of pods on this node, or of all others; null without a detector. */
export function podTraffic(detector: LocalDetector, not: boolean): Match | null {
  switch (detector.kind) {
    case "none":
      return null;
    case "cidr":
      return { kind: "source", cidr: detector.cidr, not };
    case "interface":
      return { kind: "inInterface", name: detector.name, not };
    case "interfacePrefix":
      return { kind: "inInterface", name: `${detector.prefix}+`, not };
  }
}
