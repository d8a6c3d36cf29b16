// Answers questions about the history: its changes, newest first, of all Services or of those that a query selects.
import type { FamilySettings } from "../config/resolve/settings.ts";
import { compareFrontends, type FrontendChange } from "../explain/compare.ts";
import type { To } from "../explain/question.ts";
import { type Address, type Family, families, joinHostPort } from "../model/address.ts";
import { keyed } from "../model/keyed.ts";
import { type ClusterNode, portLabel, type ServicePort } from "../model/snapshot.ts";
import { type Route, route } from "../routing/routes.ts";
import type { HistoryEntry, ServiceChange } from "./entry.ts";
import { type HistoryLog, type Recorded, recordedIn, type Stored } from "./log.ts";
import { Past, type PortStep, type Step } from "./past.ts";
import { otherWords, portWords } from "./words.ts";

export type HistoryQuery = {
  /** Milliseconds since 1970; changes before it are left out. */
  readonly since: number;
  /** Only changes after the one with this number. */
  readonly after: number;
  /** Only changes of this Service, or of the Services at this address and port; null: all. */
  readonly to: To | null;
  /** Most entries. */
  readonly limit: number;
  /**
   * Packets that are handled differently after a change. also: with every change. only: changes without any are left out; at an address,
   * only packets sent there.
   */
  readonly packets: "no" | "also" | "only";
};

/** The node whose routes are described, as it is now. */
export type Here = { readonly settings: (family: Family) => FamilySettings };

/** Newest first. `undefined`: a change that was left out, so that the caller can pause. */
export function* entriesOf(
  log: HistoryLog,
  query: HistoryQuery,
  here: Here,
): Generator<HistoryEntry | undefined> {
  if (log.latest === null) return;
  const past = new Past(log.latest);
  let left = query.limit;
  for (const stored of log.stored.toReversed()) {
    if (left === 0 || stored.at < query.since || stored.seq <= query.after) return;
    const recorded = recordedIn(stored);
    const step = past.undo(recorded.undo);
    const rezoned = query.to === null ? [] : rezonedPorts(past, step);
    const all = { ...step, ports: [...step.ports, ...rezoned] };
    const entry = entryOf(stored, recorded, all, query, here, () => unchangedAt(past, all, query, here));
    if (entry !== null) left--;
    yield entry ?? undefined;
  }
}

/** Whether a ServicePort has this Service's name, or can be reached at this address and port. */
export function isMeant(port: ServicePort, to: To, nodeIPs: readonly Address[]): boolean {
  switch (to.kind) {
    case "service":
      return (
        port.name === to.name &&
        (to.namespace === null || port.namespace === to.namespace) &&
        (to.port === null || String(port.port) === to.port || port.portName === to.port) &&
        (to.protocol === null || port.protocol === to.protocol)
      );
    case "nodePort":
      return port.nodePort === to.port && port.protocol === to.protocol;
    case "address":
      if (port.protocol !== to.protocol) return false;
      if (port.nodePort === to.port && nodeIPs.includes(to.address)) return true;
      return (
        port.port === to.port &&
        [port.clusterIP, ...port.externalIPs, ...port.loadBalancerIPs].includes(to.address)
      );
  }
}

/** Another zone of this node may change what happens to any Service, although none of them changed. */
function rezonedPorts(past: Past, { ports, node: { before, after } }: Step): PortStep[] {
  if ((before?.zone ?? "") === (after?.zone ?? "")) return [];
  const changed = new Set(ports.map(({ family, key }) => `${family} ${key}`));
  const then = past.snapshot();
  return families.flatMap((family) =>
    [...then[family].ports.entries()]
      .filter(([key]) => !changed.has(`${family} ${key}`))
      .map(([key, port]) => ({ family, key, before: port, after: port })),
  );
}

/** ServicePorts at the address of the query that a change is not about. */
function unchangedAt(past: Past, { ports }: Step, { to }: HistoryQuery, here: Here): ServicePort[] {
  if (to === null || to.kind === "service") return [];
  const changed = new Set(ports.map(({ family, key }) => `${family} ${key}`));
  const then = past.snapshot();
  const nodeIPs = nodeIPsOf(here);
  return families.flatMap((family) =>
    [...then[family].ports.values()].filter(
      (port) => !changed.has(`${family} ${port.key}`) && isMeant(port, to, nodeIPs),
    ),
  );
}

function nodeIPsOf({ settings }: Here): readonly Address[] {
  return [settings("ipv4").nodeIP, settings("ipv6").nodeIP];
}

/** null: nothing in it is meant. */
function entryOf(
  { seq, at, written }: Stored,
  { origin, clockStepMs, causes, moreCauses, pods }: Recorded,
  step: Step,
  { to, packets }: HistoryQuery,
  here: Here,
  others: () => readonly ServicePort[],
): HistoryEntry | null {
  const names = new Map(Object.entries(pods ?? {}));
  const nodeIPs = nodeIPsOf(here);
  const meant = ({ before, after }: PortStep) =>
    to === null || [before, after].some((port) => port !== undefined && isMeant(port, to, nodeIPs));
  const ports = step.ports.filter(meant);
  // Several ServicePorts may claim an address, and one of them holds it: they are routed together, once.
  const atAddress = new Map<Family, readonly FrontendChange[]>();
  const frontendsAt = (port: PortStep, places: Places): readonly FrontendChange[] => {
    if (to === null || to.kind === "service") return frontendsOf([port], [], port.family, places);
    const known = atAddress.get(port.family);
    if (known !== undefined) return known;
    const found = frontendsOf(ports, others(), port.family, places).filter(({ frontend }) =>
      isAt(frontend, to, nodeIPs),
    );
    atAddress.set(port.family, found);
    return found;
  };
  const changes = ports.flatMap((port): ServiceChange[] => {
    const places = placesIn(step, port.family, here);
    const words = portWords(port, names, places);
    if (words.length === 0 && port.before === port.after) return [];
    if (packets === "no") return [{ ...labelsOf(port), words }];
    const frontends = frontendsAt(port, places);
    if (packets === "only" && frontends.length === 0) return [];
    return [{ ...labelsOf(port), words, frontends }];
  });
  if ((to !== null || packets === "only") && changes.length === 0) return null;
  const other = to === null ? otherWords(step) : [];
  return { kind: "change", seq, at, origin, clockStepMs, causes, moreCauses, changes, other, written };
}

/** Whether packets to that destination arrive at this Frontend. */
function isAt(frontend: string, to: Exclude<To, { kind: "service" }>, nodeIPs: readonly Address[]): boolean {
  const end = `:${to.port}/${to.protocol}`;
  if (frontend === `nodePort *${end}`) return to.kind === "nodePort" || nodeIPs.includes(to.address);
  return to.kind === "address" && frontend.endsWith(` ${joinHostPort(to.address, to.port)}/${to.protocol}`);
}

function labelsOf({ family, before, after }: PortStep): Omit<ServiceChange, "words"> {
  const port = (after ?? before)!;
  const kind = before === undefined ? "added" : after === undefined ? "removed" : "changed";
  return { family, kind, service: port.service, port: portLabel(port), protocol: port.protocol };
}

type Places = { readonly before: FamilySettings; readonly after: FamilySettings };

/** The settings of a family on this node, in the zones in which it was. */
function placesIn({ node: { before, after } }: Step, family: Family, here: Here): Places {
  const settings = here.settings(family);
  const at = (node: ClusterNode | null) =>
    node === null || node.zone === settings.zone ? settings : { ...settings, zone: node.zone };
  return { before: at(before), after: at(after) };
}

/** What changes when these ServicePorts change, and the others do not. */
function frontendsOf(
  steps: readonly PortStep[],
  others: readonly ServicePort[],
  family: Family,
  places: Places,
): readonly FrontendChange[] {
  const mine = steps.filter((step) => step.family === family);
  const rest = others.filter((port) => port.family === family);
  return compareFrontends(
    routesOf([...mine.map(({ before }) => before), ...rest], places.before),
    routesOf([...mine.map(({ after }) => after), ...rest], places.after),
  );
}

function routesOf(ports: readonly (ServicePort | undefined)[], settings: FamilySettings): readonly Route[] {
  const known = ports.flatMap((port) => (port === undefined ? [] : [[port.key, port] as const]));
  const snapshot = { ports: keyed(known), changed: new Set(known.map(([key]) => key)), serviceCIDRs: [] };
  return [...route(null, snapshot, settings).ports.values()].flatMap(({ routes }) => routes);
}
