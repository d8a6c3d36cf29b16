// What would change for traffic if endpoints were gone or objects were different: who loses which endpoints, from where. Pure.
import { type Family, families } from "../model/address.ts";
import { keyed } from "../model/keyed.ts";
import { same } from "../model/same.ts";
import { type Endpoint, endpointKey, portLabel, type ServicePort, type Snapshot } from "../model/snapshot.ts";
import { atOnce, type Steps } from "../model/steps.ts";
import {
  choosePools,
  isExternallyReachable,
  type Place,
  type Pool,
  type PoolReason,
} from "../routing/pools.ts";

/** JSON of `whatif -o json`; names are stable. */
export type WhatIf = {
  /** ServicePorts that would have no usable endpoint, and have one now or do not exist now. */
  readonly withoutEndpoint: readonly PortName[];
  /** Sorted by family and ServicePort. */
  readonly changes: readonly PortOutlook[];
};

export type PortName = {
  readonly family: Family;
  /** `shop/web:http`. */
  readonly port: string;
  readonly protocol: string;
};

export type PortOutlook = PortName & {
  readonly kind: "added" | "removed" | "changed";
  /** Endpoints that are ready, or serving while they terminate. */
  readonly usable: { readonly before: number; readonly after: number };
  /** Nodes from which traffic is distributed differently. */
  readonly from: readonly GroupOutlook[];
};

/** Nodes whose traffic is distributed alike, before and after. */
export type GroupOutlook = {
  readonly nodes: readonly string[];
  readonly zones: readonly string[];
  readonly policy: "Cluster" | "Local";
  readonly before: PoolReason;
  readonly after: PoolReason;
  /** Whether topology hints are followed before and not after. */
  readonly hintsLost: boolean;
  /** Every endpoint that is used before or after; the share of new connections, from 0 to 1. */
  readonly shares: readonly Share[];
};

export type Share = {
  readonly endpoint: string;
  readonly node: string;
  readonly before: number;
  readonly after: number;
};

/** ServicePorts compared in one step: about a millisecond of work. */
const portsPerStep = 50;

/** `nodes`: those that would exist, and send traffic. */
export function whatIf(before: Snapshot, after: Snapshot, nodes: readonly Place[]): WhatIf {
  return atOnce(whatIfInSteps(before, after, nodes));
}

export function* whatIfInSteps(before: Snapshot, after: Snapshot, nodes: readonly Place[]): Steps<WhatIf> {
  const changes: PortOutlook[] = [];
  for (const family of families) {
    const [old, now] = [before[family].ports, after[family].ports];
    const keys = [...new Set([...old.keys(), ...now.keys()])].sort();
    for (const [i, key] of keys.entries()) {
      const [port, other] = [old.get(key), now.get(key)];
      if (port !== other && !same(port, other)) changes.push(outlook(family, port, other, nodes));
      if (i % portsPerStep === 0) yield;
    }
  }
  return {
    withoutEndpoint: changes
      .filter(isWithoutEndpoint)
      .map(({ family, port, protocol }) => ({ family, port, protocol })),
    changes: changes.filter(
      ({ kind, usable, from }) => kind !== "changed" || usable.before !== usable.after || from.length > 0,
    ),
  };
}

/**
 * The ServicePorts that have some of these endpoints, before and after: enough for `whatIf`. The Snapshot may be that of a
 * daemon: its maps are read without a pause, and get no newer version.
 */
export function* partsWithout(
  snapshot: Snapshot,
  isGone: (endpoint: Endpoint) => boolean,
): Steps<{ readonly before: Snapshot; readonly after: Snapshot }> {
  const changes = { ipv4: [] as Change[], ipv6: [] as Change[] };
  const all = families.flatMap((family) => [...snapshot[family].ports.values()]);
  for (const [i, port] of all.entries()) {
    if (port.endpoints.some(isGone)) changes[port.family].push({ port, left: without(port, isGone) });
    if (i % portsPerStep === 0) yield;
  }
  const part = (which: keyof Change): Snapshot => {
    const of = (family: Family) => ({
      ...snapshot[family],
      ports: keyed(changes[family].map((change) => [change[which].key, change[which]] as const)),
      changed: new Set<string>(),
    });
    return { ...snapshot, ipv4: of("ipv4"), ipv6: of("ipv6") };
  };
  return { before: part("port"), after: part("left") };
}

type Change = { readonly port: ServicePort; readonly left: ServicePort };

function without(port: ServicePort, isGone: (endpoint: Endpoint) => boolean): ServicePort {
  return { ...port, endpoints: port.endpoints.filter((each) => !isGone(each)) };
}

/** The same Snapshot without some endpoints. */
export function withoutEndpoints(snapshot: Snapshot, isGone: (endpoint: Endpoint) => boolean): Snapshot {
  const of = (family: Family) => {
    const changes = new Map<string, ServicePort>();
    for (const port of snapshot[family].ports.values())
      if (port.endpoints.some(isGone)) changes.set(port.key, without(port, isGone));
    return {
      ...snapshot[family],
      ports: snapshot[family].ports.with(changes),
      changed: new Set(changes.keys()),
    };
  };
  return { ...snapshot, ipv4: of("ipv4"), ipv6: of("ipv6") };
}

function isWithoutEndpoint({ kind, usable }: PortOutlook): boolean {
  return kind !== "removed" && usable.after === 0 && (kind === "added" || usable.before > 0);
}

function outlook(
  family: Family,
  before: ServicePort | undefined,
  after: ServicePort | undefined,
  nodes: readonly Place[],
): PortOutlook {
  const port = (after ?? before)!;
  return {
    family,
    port: portLabel(port),
    protocol: port.protocol,
    kind: before === undefined ? "added" : after === undefined ? "removed" : "changed",
    usable: { before: usableIn(before), after: usableIn(after) },
    from: before === undefined || after === undefined ? [] : groupsOf(before, after, nodes),
  };
}

function usableIn(port: ServicePort | undefined): number {
  return port?.endpoints.filter(({ state }) => state !== "unready").length ?? 0;
}

function groupsOf(before: ServicePort, after: ServicePort, nodes: readonly Place[]): GroupOutlook[] {
  const both = [before, after];
  const cluster = both.some((port) => port.internalPolicy === "cluster" || isExternallyReachable(port));
  const local = both.some(
    (port) =>
      port.internalPolicy === "local" || (port.externalPolicy === "local" && isExternallyReachable(port)),
  );
  return [
    ...(cluster ? grouped("Cluster", before, after, nodes) : []),
    ...(local ? grouped("Local", before, after, nodes.filter(isHostIn(both))) : []),
  ];
}

/** With policy Local, only nodes with endpoints are of interest. */
function isHostIn(ports: readonly ServicePort[]): (place: Place) => boolean {
  const hosts = new Set(ports.flatMap(({ endpoints }) => endpoints.map(({ nodeName }) => nodeName)));
  return ({ nodeName }) => hosts.has(nodeName);
}

function grouped(
  policy: GroupOutlook["policy"],
  before: ServicePort,
  after: ServicePort,
  nodes: readonly Place[],
): GroupOutlook[] {
  const groups = new Map<string, { places: Place[]; old: Pool; now: Pool }>();
  const kind = policy === "Cluster" ? "cluster" : "local";
  const isPerNode =
    policy === "Local" ||
    [before, after].some((port) => port.endpoints.some(({ nodeHints }) => nodeHints.length > 0));
  // Nodes of a zone choose alike, unless hints or a policy name nodes.
  const known = new Map<string, { old: Pool; now: Pool; text: string }>();
  for (const place of nodes) {
    const where = isPerNode ? `node ${place.nodeName}` : place.zone;
    let found = known.get(where);
    if (found === undefined) {
      const [old, now] = [choosePools(before, place)[kind], choosePools(after, place)[kind]];
      found = { old, now, text: `${poolText(old)}|${poolText(now)}` };
      known.set(where, found);
    }
    const { old, now, text } = found;
    if (poolText(old) === poolText(now)) continue;
    const group = groups.get(text);
    if (group === undefined) groups.set(text, { places: [place], old, now });
    else group.places.push(place);
  }
  return [...groups.values()].map(({ places, old, now }) => groupOutlook(policy, places, old, now));
}

function poolText({ because, endpoints }: Pool): string {
  return `${because} ${endpoints.map(endpointKey).join()}`;
}

function groupOutlook(
  policy: GroupOutlook["policy"],
  places: readonly Place[],
  old: Pool,
  now: Pool,
): GroupOutlook {
  const all = new Map([...old.endpoints, ...now.endpoints].map((each) => [endpointKey(each), each]));
  const shareIn = ({ endpoints }: Pool, key: string) =>
    endpoints.some((each) => endpointKey(each) === key) ? 1 / endpoints.length : 0;
  return {
    nodes: places.map(({ nodeName }) => nodeName).sort(),
    zones: [...new Set(places.flatMap(({ zone }) => (zone === "" ? [] : [zone])))].sort(),
    policy,
    before: old.because,
    after: now.because,
    hintsLost: isHinted(old) && !isHinted(now),
    shares: [...all].map(([endpoint, { nodeName }]) => ({
      endpoint,
      node: nodeName,
      before: shareIn(old, endpoint),
      after: shareIn(now, endpoint),
    })),
  };
}

function isHinted({ because }: Pool): boolean {
  return because.startsWith("ready endpoints hinted");
}
