// Which packets another mode would handle differently, and of which Services; equal ones are reported once.

import { families, joinHostPort } from "../../model/address.ts";
import { endpointKey, portLabel } from "../../model/snapshot.ts";
import type { Mode } from "../../modes/mode.ts";
import type { RelayedDecision, RelayedOutcome } from "../../modes/userspace/decide.ts";
import type { Behavior } from "../../routing/behavior.ts";
import { isLocal } from "../../routing/pools.ts";
import type { Routes } from "../../routing/routes.ts";
import type { BothRoutes } from "../resolve.ts";
import { type Probe, type ProbeSender, probesOf, type Subject, unallocatedProbe } from "./probes.ts";

/** One mode with the Routes of the node under its settings. */
export type Side = { readonly mode: Mode; readonly routes: BothRoutes };

export type PacketChange = {
  readonly subject: Subject;
  readonly who: readonly ProbeSender[];
  /** lost: it was answered. gained: it is answered. otherwise: answered differently, or refused differently. */
  readonly kind: "lost" | "gained" | "otherwise";
  readonly before: string;
  readonly after: string;
  /** Why the new mode does so, for the first of them. */
  readonly because: string;
  readonly concerns: readonly Concern[];
  /** What can be done about it; null: nothing needs to be done. */
  readonly advice: string | null;
};

/** The Service that it concerns, and where. */
export type Concern = { readonly service: string; readonly at: readonly string[] };

export function packetChanges(from: Side, to: Side): PacketChange[] {
  const found = families.flatMap((family) => {
    const sides = [
      { mode: from.mode, routes: from.routes[family] },
      { mode: to.mode, routes: to.routes[family] },
    ] as const;
    const { routes } = sides[1];
    const ports = [...routes.ports.entries()].sort(([a], [b]) => (a < b ? -1 : 1));
    const known = ports.flatMap(([, routed]) =>
      probesOf(routed, routes).flatMap((probe) => compared(probe, portLabel(routed.port), sides)),
    );
    const stray = unallocatedProbe(routes);
    return stray === null ? known : [...known, ...compared(stray, "", sides)];
  });
  return withSendersTogether(together(found))
    .sort(bySubject)
    .map((change) => ({ ...change, advice: adviceFor(change, to.mode.behavior) }));
}

type Change = Omit<PacketChange, "advice">;

type FamilySide = { readonly mode: Mode; readonly routes: Routes };

type Found = Omit<Change, "who" | "concerns"> & {
  readonly who: ProbeSender;
  readonly service: string;
  readonly at: string;
};

function compared(probe: Probe, service: string, [old, next]: readonly [FamilySide, FamilySide]): Found[] {
  const { subject, who, packet } = probe;
  const [before, after] = [old.mode.decide(old.routes, packet), next.mode.decide(next.routes, packet)];
  if (signature(before.outcome) === signature(after.outcome)) return [];
  const detail = detailOf(before.outcome, after.outcome);
  const { to } = packet;
  const at = to.protocol === "icmp" ? to.address : `${joinHostPort(to.address, to.port)}/${to.protocol}`;
  return [
    {
      subject,
      who,
      kind: kindOf(before.outcome, after.outcome),
      before: resultText(before.outcome, old.routes, detail),
      after: resultText(after.outcome, next.routes, detail),
      because: reasonOf(after, probe),
      service,
      at,
    },
  ];
}

function signature(outcome: RelayedOutcome): string {
  if (outcome.kind !== "forward") return outcome.kind;
  const choices = outcome.choices.map(({ endpoint, masquerade }) => `${endpointKey(endpoint)} ${masquerade}`);
  return choices.sort().join();
}

/** What must be printed about the endpoints for the difference to show. */
type Detail = "none" | "seen" | "place";

function detailOf(before: RelayedOutcome, after: RelayedOutcome): Detail {
  if (before.kind !== "forward" || after.kind !== "forward") return "none";
  const [old, next] = [before, after].map(({ choices }) =>
    choices
      .map(({ endpoint }) => endpointKey(endpoint))
      .sort()
      .join(),
  );
  return old === next ? "seen" : "place";
}

function reasonOf({ hit, because }: RelayedDecision, { subject, packet }: Probe): string {
  const isNodePort = subject === "loopback" || subject === "otherAddress";
  return hit === null && isNodePort ? `NodePorts do not answer on ${packet.to.address}` : because.at(-1)!;
}

function kindOf(before: RelayedOutcome, after: RelayedOutcome): PacketChange["kind"] {
  if (before.kind === "forward" && after.kind !== "forward") return "lost";
  return before.kind !== "forward" && after.kind === "forward" ? "gained" : "otherwise";
}

function resultText(outcome: RelayedOutcome, { settings }: Routes, detail: Detail): string {
  switch (outcome.kind) {
    case "reject":
      return "is refused immediately";
    case "drop":
      return "is dropped silently";
    case "pass":
      return "is not handled by the proxy";
    case "close":
      return "is accepted by a relay, which has no endpoint for it";
    case "forward": {
      if (detail === "none") return "reaches endpoints";
      const place = detail === "place" ? placeOf(outcome.choices, settings) : "";
      return `reaches endpoints${place}, which see ${seenBy(outcome.choices)}`;
    }
  }
}

type Choices = Extract<RelayedOutcome, { kind: "forward" }>["choices"];

function placeOf(choices: Choices, settings: Routes["settings"]): string {
  const local = choices.filter(({ endpoint }) => isLocal(endpoint, settings)).length;
  if (local === choices.length) return " on this node";
  return local === 0 ? " on other nodes" : " anywhere";
}

function seenBy(choices: Choices): string {
  const masqueraded = choices.filter(({ masquerade }) => masquerade).length;
  if (masqueraded === 0) return "the client";
  return masqueraded === choices.length ? "this node instead of the client" : "the client, or this node";
}

/** Merges equal changes, with all Services they concern. */
function together(found: readonly Found[]): Change[] {
  const changes = new Map<string, Omit<Change, "concerns"> & { concerns: Map<string, string[]> }>();
  for (const { service, at, who, ...rest } of found) {
    const id = [rest.subject, who, rest.before, rest.after].join("|");
    const change = changes.get(id) ?? { ...rest, who: [who], concerns: new Map<string, string[]>() };
    changes.set(id, change);
    change.concerns.set(service, [...(change.concerns.get(service) ?? []), at]);
  }
  return [...changes.values()].map(({ concerns, ...change }) => ({
    ...change,
    concerns: [...concerns].map(([service, at]) => ({ service, at: [...new Set(at)] })),
  }));
}

/** Senders for which the change is the same, at the same places, share a change. */
function withSendersTogether(changes: readonly Change[]): Change[] {
  const merged = new Map<string, Change>();
  for (const change of changes) {
    const id = [change.subject, change.before, change.after, JSON.stringify(change.concerns)].join("|");
    const known = merged.get(id);
    merged.set(id, known === undefined ? change : { ...known, who: [...known.who, ...change.who] });
  }
  return [...merged.values()];
}

const order = { lost: 0, gained: 1, otherwise: 2 } as const;

function bySubject(a: Change, b: Change): number {
  return order[a.kind] - order[b.kind] || subjects.indexOf(a.subject) - subjects.indexOf(b.subject);
}

const subjects: readonly Subject[] = [
  "clusterIP",
  "loadBalancerIP",
  "externalIP",
  "nodePort",
  "otherAddress",
  "loopback",
  "itself",
  "undefinedPort",
  "ping",
  "unallocated",
];

function adviceFor({ subject, kind }: Change, to: Behavior): string | null {
  if (kind === "gained") return subject === "otherAddress" || subject === "loopback" ? openNow : null;
  if (subject === "ping") return "monitor a port of the Service instead of pinging its address";
  if (kind !== "lost") return null;
  if (subject === "loopback") return loopbackAdvice[to.loopback];
  if (subject === "otherAddress") return "list the addresses in nodePortAddresses, or use [all]";
  return null;
}

const openNow = "if it must not be reachable there, set nodePortAddresses";

const loopbackAdvice: Readonly<Record<Behavior["loopback"], string>> = {
  nftLocalhost:
    "use the node's address; or list localhost in nodePortAddresses and switch on KubeProxyNFTablesLocalhostNodePorts",
  localhostNodePorts: "set iptables.localhostNodePorts",
  never: "use the node's address",
  always: "use TCP, or the node's address",
};
