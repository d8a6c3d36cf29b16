// Generated ServicePorts, settings and packets with small pools of addresses, so that they often collide.
import fc from "fast-check";
import type { FamilySettings } from "../src/config/resolve/settings.ts";
import type { Family } from "../src/model/address.ts";
import { type Keyed, keyed } from "../src/model/keyed.ts";
import {
  type Endpoint,
  endpointKey,
  type FamilySnapshot,
  portKey,
  type ServicePort,
} from "../src/model/snapshot.ts";
import type { Packet } from "../src/routing/decide.ts";

const pools = {
  ipv4: {
    pods: ["10.0.1.1", "10.0.1.2", "10.0.2.1", "10.0.2.2", "10.0.2.10", "192.168.0.2"],
    services: ["172.30.0.1", "172.30.0.2", "172.30.0.3"],
    external: ["198.51.100.1", "198.51.100.2", "192.168.0.2"],
    node: ["192.168.0.2", "192.168.1.2"],
    others: ["203.0.113.9", "203.0.113.200", "192.168.0.3", "10.0.2.1", "10.0.1.1", "10.0.1.9"],
    ranges: ["203.0.113.0/25", "203.0.113.0/24", "192.168.0.0/24", "10.0.0.0/8"],
    podCIDR: "10.0.0.0/8",
    nodeCIDR: "192.168.0.0/24",
    serviceCIDR: "172.30.0.0/16",
    unallocated: "172.30.9.9",
    loopback: "127.0.0.1",
  },
  ipv6: {
    pods: ["fd00:1::1", "fd00:1::2", "fd00:2::1", "fd00:2::2", "fd00:2::10", "2001:db8::2"],
    services: ["fd30::1", "fd30::2", "fd30::3"],
    external: ["fd98::1", "fd98::2", "2001:db8::2"],
    node: ["2001:db8::2", "2001:db8:1::2"],
    others: ["2001:db8:f::9", "2001:db8:e::9", "2001:db8::3", "fd00:2::1", "fd00:1::1", "fd00:1::9"],
    ranges: ["2001:db8:f::/64", "2001:db8:f::/48", "2001:db8::/64", "fd00::/16"],
    podCIDR: "fd00::/16",
    nodeCIDR: "2001:db8::/64",
    serviceCIDR: "fd30::/64",
    unallocated: "fd30::9:9",
    loopback: "::1",
  },
} as const;

const protocol = fc.constantFrom("tcp", "udp", "sctp");
const port = fc.constantFrom(80, 443);
const nodePort = fc.constantFrom(0, 30080, 30443);

export function endpoint(family: Family): fc.Arbitrary<Endpoint> {
  return fc
    .record({
      address: fc.constantFrom(...pools[family].pods),
      port: fc.constantFrom(8080, 8443),
      state: fc.constantFrom("ready", "ready", "ready", "draining", "unready"),
      hints: fc.constantFrom("none", "none", "zones", "nodes", "both"),
      zone: fc.constantFrom("a", "b"),
    })
    .map(({ address, port, state, hints, zone }) => {
      const nodeName = /^(10\.0\.1|fd00:1|192|2001)/.test(address) ? "node-a" : "node-b";
      return {
        address,
        port,
        state,
        serving: state !== "unready",
        nodeName,
        zoneHints: hints === "zones" || hints === "both" ? [zone] : [],
        nodeHints: hints === "nodes" || hints === "both" ? [nodeName] : [],
      };
    });
}

export function servicePort(family: Family): fc.Arbitrary<ServicePort> {
  const pool = pools[family];
  const addresses = (from: readonly string[]) => fc.uniqueArray(fc.constantFrom(...from), { maxLength: 2 });
  return fc
    .record({
      name: fc.constantFrom("a", "b", "c", "d"),
      portName: fc.constantFrom("", "x"),
      protocol,
      clusterIP: fc.constantFrom(...pool.services),
      port,
      nodePort,
      externalIPs: addresses(pool.external),
      loadBalancerIPs: addresses(pool.external),
      sourceRanges: fc.uniqueArray(fc.constantFrom(...pool.ranges), { maxLength: 2 }),
      affinity: fc.constantFrom(null, null, null, { seconds: 10800 }, { seconds: 60 }),
      internalPolicy: fc.constantFrom("cluster", "cluster", "local"),
      externalPolicy: fc.constantFrom("cluster", "local"),
      endpoints: fc.uniqueArray(endpoint(family), { maxLength: 5, selector: endpointKey }),
    })
    .map((fields) => {
      const service = `shop/${fields.name}`;
      const endpoints = [...fields.endpoints].sort((a, b) => (endpointKey(a) < endpointKey(b) ? -1 : 1));
      const key = portKey(service, fields.protocol, fields.portName);
      return { ...fields, endpoints, key, family, service, namespace: "shop", healthCheckNodePort: 0 };
    });
}

export function settings(family: Family): fc.Arbitrary<FamilySettings> {
  const pool = pools[family];
  return fc.record({
    family: fc.constant(family),
    nodeName: fc.constant("node-a"),
    zone: fc.constantFrom("", "a", "b"),
    nodeIP: fc.constant(pool.node[0]),
    localAddresses: fc.constant(pool.node),
    detector: fc.constantFrom<FamilySettings["detector"]>(
      { kind: "none" },
      { kind: "cidr", cidr: pool.podCIDR },
      { kind: "interface", name: "br0" },
      { kind: "interfacePrefix", prefix: "br" },
    ),
    masqueradeAll: fc.boolean(),
    masqueradeMark: fc.constantFrom(0x4000, 1, 0x80000000 | 0).map((mark) => mark >>> 0),
    nodePortAddresses: fc.constantFrom<FamilySettings["nodePortAddresses"]>(
      { kind: "all" },
      { kind: "some", cidrs: [pool.nodeCIDR] },
      { kind: "some", cidrs: [`${pool.node[1]}/${family === "ipv4" ? 32 : 128}`] },
    ),
    localhostNodePorts: fc.boolean().map((on) => on && family === "ipv4"),
    nftLocalhost: fc.constantFrom("pass", "pass", "reject"),
    externalIPsAllowed: fc.constantFrom(true, true, true, false),
    tcpBeLiberal: fc.boolean(),
    traffic: fc.constantFrom("off", "off", "services", "endpoints"),
  });
}

/** Packets to addresses that matter, from senders that can exist. */
export function packet(family: Family): fc.Arbitrary<Packet> {
  const pool = pools[family];
  const from = fc.oneof(
    fc.record({
      origin: fc.constant("pod" as const),
      address: fc.constantFrom(pool.pods[0], pool.pods[1], pool.others[5]),
    }),
    fc.record({ origin: fc.constant("node" as const), address: fc.constantFrom(...pool.node) }),
    fc.record({
      origin: fc.constant("elsewhere" as const),
      address: fc.constantFrom(...pool.others.slice(0, 4)),
    }),
  );
  const to = fc.record({
    address: fc.constantFrom(...pool.services, ...pool.external, ...pool.node, pool.unallocated),
    protocol: fc.oneof(
      { weight: 8, arbitrary: protocol },
      { weight: 1, arbitrary: fc.constant("icmp" as const) },
    ),
    port: fc.constantFrom(80, 443, 30080, 30443),
  });
  return fc.record({ from, to });
}

/** A Snapshot's part of a family; keys that occur twice count once. */
export function snapshotOf(
  ports: readonly ServicePort[],
  family: Family,
  changed: Iterable<string> = [],
): FamilySnapshot {
  const byKey: Keyed<ServicePort> = keyed(ports.map((each) => [each.key, each] as const));
  return { ports: byKey, changed: new Set(changed), serviceCIDRs: [pools[family].serviceCIDR] };
}
