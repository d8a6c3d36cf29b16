// Random clusters for property tests: every feature of every kind of object, good and hostile, with addresses that collide.
import fc from "fast-check";
import { type Kind, kinds } from "../src/manifests/objects.ts";

/** One event as a Source would receive it. */
export type Step =
  | { readonly op: "upsert"; readonly kind: Kind; readonly object: unknown }
  | { readonly op: "remove"; readonly kind: Kind; readonly namespace: string; readonly name: string }
  | { readonly op: "replace"; readonly kind: Kind; readonly objects: readonly unknown[] }
  | { readonly op: "take" };

/** All objects of a cluster, by kind; names may repeat, the last one counts. */
export type Objects = Readonly<Record<Kind, readonly unknown[]>>;

export type Taste = {
  /** Also objects that no API server would hand out. */
  readonly hostile: boolean;
};

/** The name of this Node in generated clusters. */
export const thisNode = "node-a";

/** The same seed generates the same cluster. */
export function clusterFromSeed(seed: number, taste: Taste = { hostile: false }): Objects {
  return fc.sample(arbitraryObjects(taste), { seed, numRuns: 1 })[0]!;
}

/** Lists of everything, as at a start, then events. */
export function arbitraryHistory(taste: Taste): fc.Arbitrary<readonly Step[]> {
  const events = fc.array(arbitraryStep(taste), { minLength: 1, maxLength: 20, size: "max" });
  return fc
    .tuple(arbitraryObjects(taste), events)
    .map(([objects, steps]) => [
      ...kinds.map((kind) => ({ op: "replace" as const, kind, objects: objects[kind] })),
      ...steps,
    ]);
}

export function arbitraryObjects(taste: Taste): fc.Arbitrary<Objects> {
  return fc.record({
    Service: fc.array(arbitraryObject("Service", taste), { maxLength: 6, size: "max" }),
    EndpointSlice: fc.array(arbitraryObject("EndpointSlice", taste), { maxLength: 9, size: "max" }),
    Node: fc.array(arbitraryObject("Node", taste), { maxLength: 2 }),
    ServiceCIDR: fc.array(arbitraryObject("ServiceCIDR", taste), { maxLength: 3 }),
  });
}

export function arbitraryObject(kind: Kind, { hostile }: Taste): fc.Arbitrary<unknown> {
  const good = goodObjects[kind];
  if (!hostile) return good;
  return fc.oneof({ weight: 6, arbitrary: good }, { weight: 3, arbitrary: spoilt(good) }, fc.jsonValue());
}

function arbitraryStep(taste: Taste): fc.Arbitrary<Step> {
  const perKind = (kind: Kind): fc.Arbitrary<Step> =>
    fc.oneof(
      {
        weight: 9,
        arbitrary: fc.record({
          op: fc.constant("upsert" as const),
          kind: fc.constant(kind),
          object: arbitraryObject(kind, taste),
        }),
      },
      {
        weight: 2,
        arbitrary: names(kind).map(({ namespace, name }) => ({
          op: "remove" as const,
          kind,
          namespace: namespace ?? "",
          name,
        })),
      },
      fc.record({
        op: fc.constant("replace" as const),
        kind: fc.constant(kind),
        objects: fc.array(arbitraryObject(kind, taste), { maxLength: 5, size: "max" }),
      }),
    );
  return fc.oneof(
    { weight: 4, arbitrary: perKind("Service") },
    { weight: 5, arbitrary: perKind("EndpointSlice") },
    { weight: 1, arbitrary: perKind("Node") },
    { weight: 1, arbitrary: perKind("ServiceCIDR") },
    { weight: 4, arbitrary: fc.constant({ op: "take" as const }) },
  );
}

// Small pools: the same Service, address and port come up again and again.

const namespaces = mostly("shop", "kube-system");
const serviceNames = mostly("web", "dns", "a.b-c");
const portNames = mostly("http", "dns", "", undefined);
const portNumbers = fc.constantFrom(53, 80, 443, 8080, 65535);
const protocols = mostly("TCP", "UDP", "SCTP", undefined);
const policies = fc.constantFrom("Cluster", "Local", undefined);
const nodeNames = fc.constantFrom(thisNode, "node-b", "NODE-A");
const zones = fc.constantFrom("z1", "z2");

const serviceIPs = {
  IPv4: fc.constantFrom("172.30.0.1", "172.30.0.2", "172.30.0.3"),
  IPv6: fc.constantFrom("fd00:30::1", "fd00:30::2", "fd00:30:0:0:0:0:0:3"),
};
const podIPs = {
  IPv4: fc.constantFrom("10.0.1.1", "10.0.1.2", "10.0.1.10", "10.0.1.100", "010.0.1.1", "::ffff:10.0.1.2"),
  IPv6: fc.constantFrom("fd00:10::1", "fd00:10::1a", "fd00:10::1:1", "FD00:10::0001", "fe80::1"),
};
const outsideIPs = fc.constantFrom(
  "203.0.113.1",
  "203.0.113.2",
  "2001:db8::1",
  "::ffff:203.0.113.1",
  " ",
  "",
);
const ranges = fc.constantFrom(
  "10.1.2.3/8",
  " 203.0.113.0/24",
  "2001:db8::/32",
  "0.0.0.0/0",
  "::/0",
  "192.0.2.0/024",
);

/** A value for an address field, rarely an invalid one. */
const nonsense = fc.constantFrom(
  "256.1.1.1",
  "1.2.3",
  " 10.0.0.1",
  "fe80::1%eth0",
  "[::1]",
  "\u001b[31m",
  "a\nb",
  "127.0.0.1",
);
const oftenOf = (good: fc.Arbitrary<string>) => fc.oneof({ weight: 12, arbitrary: good }, nonsense);

/** The first far more often than the others. */
function mostly<T>(first: T, ...others: readonly T[]): fc.Arbitrary<T> {
  return fc.oneof({ weight: 3, arbitrary: fc.constant(first) }, fc.constantFrom(...others));
}

function names(kind: Kind): fc.Arbitrary<{ namespace?: string; name: string }> {
  switch (kind) {
    case "Service":
      return fc.record({ namespace: namespaces, name: serviceNames });
    case "EndpointSlice":
      return fc.record({ namespace: namespaces, name: fc.constantFrom("web-1", "web-2", "web-3", "dns-1") });
    case "Node":
      return fc.record({ name: fc.constantFrom(thisNode, "node-b") });
    case "ServiceCIDR":
      return fc.record({ name: fc.constantFrom("kubernetes", "more") });
  }
}

/** A list of up to `maxLength`, rarely empty, rarely no such field at all. */
function some<T>(item: fc.Arbitrary<T>, maxLength = 3): fc.Arbitrary<T[] | undefined> {
  const list = fc.array(item, { minLength: 1, maxLength, size: "max" });
  return fc.oneof({ weight: 12, arbitrary: list }, fc.constantFrom<T[] | undefined>([], undefined));
}

/** Undefined fields are not there at all, as in JSON. */
function object(fields: Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<unknown> {
  return fc
    .record(fields)
    .map((made) => Object.fromEntries(Object.entries(made).filter(([, value]) => value !== undefined)));
}

function rarely(value: unknown): fc.Arbitrary<unknown> {
  return fc.oneof({ weight: 15, arbitrary: fc.constant(undefined) }, fc.constant(value));
}

const familyLists = fc.constantFrom<string[]>(["IPv4", "IPv6"], ["IPv6", "IPv4"], ["IPv4"], ["IPv6"]);

const clusterIPs: fc.Arbitrary<{ clusterIP: string; clusterIPs?: string[]; ipFamilies?: string[] }> =
  fc.oneof(
    fc.constantFrom("None", "").map((clusterIP) => ({ clusterIP })),
    {
      weight: 3,
      arbitrary: oftenOf(fc.oneof(serviceIPs.IPv4, serviceIPs.IPv6)).map((clusterIP) => ({ clusterIP })),
    },
    {
      weight: 12,
      arbitrary: fc.tuple(serviceIPs.IPv4, serviceIPs.IPv6, familyLists).map(([four, six, ipFamilies]) => {
        const clusterIPs = ipFamilies.map((family) => (family === "IPv4" ? four : six));
        return { clusterIP: clusterIPs[0]!, clusterIPs, ipFamilies };
      }),
    },
  );

const services = fc
  .tuple(
    names("Service"),
    rarely({ "service.kubernetes.io/service-proxy-name": "other" }),
    clusterIPs,
    object({
      type: mostly(
        "LoadBalancer",
        "ClusterIP",
        "NodePort",
        undefined,
        "ClusterIP",
        "NodePort",
        "ExternalName",
      ),
      ports: some(
        object({
          name: portNames,
          protocol: fc.oneof({ weight: 12, arbitrary: protocols }, fc.constantFrom("ICMP", "tcp")),
          port: fc.oneof({ weight: 12, arbitrary: portNumbers }, fc.constantFrom(0, 65536, -1)),
          nodePort: fc.constantFrom(undefined, 0, 30080, 30053),
        }),
        4,
      ),
      externalIPs: some(oftenOf(outsideIPs)),
      loadBalancerSourceRanges: some(oftenOf(ranges)),
      sessionAffinity: fc.constantFrom("None", "ClientIP", undefined),
      sessionAffinityConfig: fc.constantFrom(
        undefined,
        {},
        { clientIP: {} },
        { clientIP: { timeoutSeconds: 60 } },
      ),
      internalTrafficPolicy: policies,
      externalTrafficPolicy: policies,
      healthCheckNodePort: fc.constantFrom(undefined, 0, 31000, 70000),
    }),
    some(
      object({
        ip: oftenOf(outsideIPs),
        ipMode: fc.constantFrom("VIP", "Proxy", undefined),
        hostname: fc.constantFrom("lb.example", undefined),
      }),
    ),
  )
  .map(([name, labels, ips, spec, ingress]) => ({
    metadata: { ...name, ...(labels === undefined ? {} : { labels }) },
    spec: { ...(spec as object), ...ips },
    status: { loadBalancer: ingress === undefined ? {} : { ingress } },
  }));

const conditions = fc.constantFrom(
  undefined,
  {},
  { ready: true },
  { ready: false },
  { ready: true, serving: true, terminating: false },
  { ready: false, serving: true, terminating: true },
  { ready: false, serving: false, terminating: true },
  { ready: true, serving: true, terminating: true },
  { ready: null, serving: null, terminating: null },
);

function endpoints(family: "IPv4" | "IPv6"): fc.Arbitrary<unknown> {
  return object({
    addresses: some(oftenOf(podIPs[family]), 2),
    conditions,
    nodeName: fc.option(nodeNames, { nil: undefined }),
    zone: fc.option(zones, { nil: undefined }),
    hints: fc.option(
      object({ forZones: some(object({ name: zones })), forNodes: some(object({ name: nodeNames }), 2) }),
      { nil: undefined },
    ),
  });
}

const slices = fc
  .tuple(
    names("EndpointSlice"),
    serviceNames,
    fc.constantFrom("IPv4" as const, "IPv6" as const),
    rarely("FQDN"),
    rarely({ "service.kubernetes.io/headless": "" }),
    rarely({ "endpoints.kubernetes.io/last-change-trigger-time": "2026-01-02T03:04:05Z" }),
  )
  .chain(([name, owner, family, otherType, headless, annotations]) =>
    object({
      metadata: object({
        name: fc.constant(name.name),
        namespace: fc.constant(name.namespace),
        labels: fc.constant({ "kubernetes.io/service-name": owner, ...(headless as object) }),
        annotations: fc.constant(annotations),
      }),
      addressType: fc.constant(otherType ?? family),
      ports: some(
        object({
          name: portNames,
          protocol: protocols,
          port: fc.oneof({ weight: 12, arbitrary: portNumbers }, fc.constantFrom(0, undefined)),
        }),
      ),
      endpoints: some(endpoints(family), 6),
    }),
  );

const nodes = fc.tuple(names("Node"), fc.option(zones, { nil: undefined })).chain(([name, zone]) =>
  object({
    metadata: object({
      name: fc.constant(name.name),
      labels: fc.constant(zone === undefined ? undefined : { "topology.kubernetes.io/zone": zone }),
      deletionTimestamp: rarely("2026-01-02T03:04:05Z"),
    }),
    spec: object({
      podCIDRs: some(oftenOf(fc.constantFrom("10.0.1.0/24", "fd00:10::/64")), 2),
      taints: some(object({ key: fc.constantFrom("ToBeDeletedByClusterAutoscaler", "other") }), 2),
    }),
    status: object({
      addresses: some(
        object({
          type: fc.constantFrom("InternalIP", "ExternalIP", "Hostname"),
          address: oftenOf(fc.constantFrom("192.168.0.2", "192.168.0.3", "fd00:192::2")),
        }),
        4,
      ),
    }),
  }),
);

const serviceCIDRs = names("ServiceCIDR").chain(({ name }) =>
  object({
    metadata: fc.constant({ name }),
    spec: object({
      cidrs: some(oftenOf(fc.constantFrom("172.30.0.0/16", "172.29.0.0/16", "fd00:30::/112"))),
    }),
  }),
);

const goodObjects: Readonly<Record<Kind, fc.Arbitrary<unknown>>> = {
  Service: services,
  EndpointSlice: slices,
  Node: nodes,
  ServiceCIDR: serviceCIDRs,
};

/** A valid object with arbitrary JSON in one random place. */
function spoilt(good: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  return fc.tuple(good, fc.nat(), fc.jsonValue()).map(([object, at, value]) => {
    const copy = structuredClone(object);
    const places = placesIn(copy);
    const place = places[at % places.length];
    if (place === undefined) return value;
    place.in[place.key] = value;
    return copy;
  });
}

type Place = { readonly in: Record<string, unknown>; readonly key: string };

function placesIn(value: unknown): Place[] {
  if (typeof value !== "object" || value === null) return [];
  const fields = value as Record<string, unknown>;
  return Object.keys(fields).flatMap((key) => [{ in: fields, key }, ...placesIn(fields[key])]);
}
