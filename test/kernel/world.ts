// The reference set-up made of network namespaces: a node under test, its pods, another node, and the outside.
import { existsSync, readFileSync } from "node:fs";
import { type Address, type Family, families } from "../../src/model/address.ts";
import {
  frontendNetworks,
  gateway,
  inFamily,
  interfaceOf,
  loadBalancerAddressesOnNode,
  nodeNetwork,
  nodePodNetwork,
  otherNodePodNetwork,
  outsideAddresses,
  outsideNetwork,
  type Place,
  places,
  podGateway,
  secondNodeAddress,
} from "../places.ts";
import { createNamespaces, type Namespace, removeNamespaces, sweepNamespaces } from "./netns.ts";
import { type Poller, startPoller } from "./poller.ts";
import { serveSctp, serveTcp, serveUdp } from "./servers.ts";

export type World = {
  /** The namespace of each place; `host` is the node under test. */
  readonly at: Readonly<Record<Place, Namespace>>;
  /** The node under test. */
  readonly node: Namespace;
  readonly poller: Poller;
  /** Forgets every flow that the node tracks; NAT decisions are made once for each flow. */
  forgetFlows(): void;
  /** Removes every rule and flow from the node, and what proxies switch on. */
  sweep(): void;
  /** What a foreign firewall does with forwarded packets on the node. */
  setForwardPolicy(policy: "ACCEPT" | "DROP"): void;
  /** What a foreign firewall does with packets to the node itself. */
  setInputPolicy(policy: "ACCEPT" | "DROP"): void;
  close(): Promise<void>;
};

/** Ports on which every pod answers, over TCP and UDP; SCTP is answered on all. */
export const podPorts: readonly number[] = [8080, 8081, 8082];

/** The port on which the node under test itself answers, under its first address. */
export const nodeServerPort = 8080;

export const macs = { host: "02:00:00:00:00:02", RN: "02:00:00:00:00:03", X: "02:00:00:00:00:04" } as const;

/** Of packet-filter tables: the one that `iptables` speaks to here, or the old one. */
export type BackEnd = "default" | "legacy";

/** Builds a world, with a name where there are several; after any failure nothing is left. */
export async function createWorld(name = "", backEnd: BackEnd = "default"): Promise<World> {
  const labels = { host: "n", L1: "l1", L2: "l2", RN: "rn", R1: "r1", R2: "r2", X: "x", lan: "lan" } as const;
  sweepNamespaces();
  const made = createNamespaces(Object.values(labels).map((label) => `${name}${label}`));
  const poller = startPoller();
  const close = async (): Promise<void> => {
    try {
      await poller.stop();
    } finally {
      removeNamespaces(made);
    }
  };
  try {
    for (const netns of made) netns.sysctl(quiet);
    const [host, L1, L2, RN, R1, R2, X, lan] = made as Eight<Namespace>;
    const at = { host, L1, L2, RN, R1, R2, X };
    connect(at, lan);
    serve(at, poller);
    return {
      at,
      node: at.host,
      poller,
      forgetFlows: () => void at.host.run("conntrack", "-F"),
      sweep() {
        flushRules(at.host);
        flushServers(at.host);
        at.host.sysctl({ "net.ipv4.conf.all.route_localnet": 0 });
        at.host.run("conntrack", "-F");
      },
      setForwardPolicy: (policy) => setPolicy(at.host, backEnd, "FORWARD", policy),
      setInputPolicy: (policy) => setPolicy(at.host, backEnd, "INPUT", policy),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Some kernels have no nf_tables, or rules outside of it as well. */
function flushRules(node: Namespace): void {
  try {
    node.run("nft", "flush", "ruleset");
  } catch {
    // There is nothing to flush then.
  }
  for (const [list, tool] of [
    ["ip_tables_names", "iptables-legacy-restore"],
    ["ip6_tables_names", "ip6tables-legacy-restore"],
  ] as const) {
    const tables = node.inside(() => textOf(`/proc/thread-self/net/${list}`)).split("\n");
    const flushed = tables.filter((table) => table !== "").map((table) => `*${table}\nCOMMIT\n`);
    // All namespaces share the lock of the legacy tools.
    if (flushed.length > 0) node.feed(flushed.join(""), tool, "-w", "60");
  }
}

function textOf(file: string): string {
  return existsSync(file) ? readFileSync(file, "utf8") : "";
}

/** What ipvs mode leaves besides rules; few kernels support it. */
function flushServers(node: Namespace): void {
  if (!node.inside(() => existsSync("/proc/thread-self/net/ip_vs"))) return;
  node.run("ipvsadm", "-C");
  node.run("ipset", "destroy");
  if (node.inside(() => existsSync("/proc/thread-self/net/dev_snmp6/kube-ipvs0")))
    node.ip("link delete kube-ipvs0");
}

function setPolicy(node: Namespace, backEnd: BackEnd, chain: string, policy: string): void {
  const variant = backEnd === "legacy" ? "-legacy" : "";
  for (const tool of ["iptables", "ip6tables"]) node.run(`${tool}${variant}`, "-w", "5", "-P", chain, policy);
}

/** Settings of every namespace: routers without filters that report every error immediately. */
const quiet = {
  "net.ipv4.ip_forward": 1,
  "net.ipv6.conf.all.forwarding": 1,
  // Limits on ICMP errors would make a REJECT look like a DROP.
  "net.ipv4.icmp_ratelimit": 0,
  "net.ipv4.icmp_ratemask": 0,
  "net.ipv4.icmp_msgs_per_sec": 100_000,
  "net.ipv4.icmp_msgs_burst": 100_000,
  "net.ipv6.icmp.ratelimit": 0,
  // Replies may come back another way than the request went.
  "net.ipv4.conf.all.rp_filter": 0,
  "net.ipv4.conf.default.rp_filter": 0,
  "net.ipv4.conf.all.send_redirects": 0,
  "net.ipv4.conf.default.send_redirects": 0,
  "net.ipv4.conf.all.accept_redirects": 0,
  "net.ipv6.conf.all.accept_redirects": 0,
  "net.ipv6.conf.default.accept_redirects": 0,
  "net.ipv6.conf.all.accept_dad": 0,
  "net.ipv6.conf.default.accept_dad": 0,
  "net.ipv6.conf.default.accept_ra": 0,
  // The tracked flow, which must still exist, distinguishes a drop from a lost response.
  "net.netfilter.nf_conntrack_sctp_timeout_closed": 120,
  "net.netfilter.nf_conntrack_sctp_timeout_cookie_wait": 120,
  "net.bridge.bridge-nf-call-iptables": 0,
  "net.bridge.bridge-nf-call-ip6tables": 0,
} as const;

type Eight<T> = [T, T, T, T, T, T, T, T];

/** One run of `ip` in each namespace: in a user-mode kernel, starting a program takes a tenth of a second. */
function connect(at: Record<Place, Namespace>, lan: Namespace): void {
  lan.ip(
    "link set lo up",
    "link add lan type bridge",
    "link set lan up",
    ...addresses("lan", 24, gateway),
    ...routes(frontendNetworks, (network) => `${network} dev lan`),
    ...via([nodePodNetwork, outsideNetwork], places.host),
    ...via([otherNodePodNetwork], places.RN),
    ...(["host", "RN", "X"] as const).flatMap((place) => plug(at[place], place)),
  );
  refuseFrontends(lan);
  at.host.ip(
    ...interfacesUp,
    ...addresses("eth0", 24, places.host),
    ...addresses("lo", 32, secondNodeAddress, ...loadBalancerAddressesOnNode),
    ...routes(
      ["0.0.0.0/0"],
      (all, family) => `${all} via ${inFamily(gateway, family)} ${sourceOf("host", family)}`,
    ),
    ...via([otherNodePodNetwork], places.RN),
    ...routes([outsideNetwork], (network, family) => `${network} dev eth0 ${sourceOf("host", family)}`),
    ...linkTo(at.L1, "L1"),
    ...linkTo(at.L2, "L2"),
  );
  at.RN.ip(
    ...interfacesUp,
    ...addresses("eth0", 24, places.RN),
    ...via(["0.0.0.0/0"], gateway),
    // Answers of remote pods to the outside go back through the node under test, which then can undo its NAT.
    ...via([nodePodNetwork, outsideNetwork, ...frontendNetworks], places.host),
    ...linkTo(at.R1, "R1"),
    ...linkTo(at.R2, "R2"),
  );
  at.X.ip(
    ...interfacesUp,
    ...addresses("eth0", 32, ...outsideAddresses),
    ...routes([nodeNetwork], (network, family) => `${network} dev eth0 ${sourceOf("X", family)}`),
    ...via([nodePodNetwork, `${secondNodeAddress}/32`, ...frontendNetworks], places.host),
    ...via([otherNodePodNetwork], places.RN),
  );
  for (const pod of ["L1", "L2", "R1", "R2"] as const) connectPod(at[pod], pod);
}

const interfacesUp = ["link set lo up", "link set eth0 up"];

/** Packets that no proxy handled are rejected by the gateway. An `unreachable` route would do so only once a second. */
function refuseFrontends(lan: Namespace): void {
  for (const [tool, family, answer] of [
    ["iptables-restore", "ipv4", "icmp-host-unreachable"],
    ["ip6tables-restore", "ipv6", "icmp6-addr-unreachable"],
  ] as const) {
    const rules = frontendNetworks.map(
      (network) => `-A FORWARD -d ${inFamily(network, family)} -j REJECT --reject-with ${answer}`,
    );
    lan.feed(["*filter", ...rules, "COMMIT", ""].join("\n"), tool);
  }
}

/** A cable from the bridge to a machine's `eth0`. */
function plug(machine: Namespace, place: keyof typeof macs): string[] {
  const port = `p-${place.toLowerCase()}`;
  return [
    `link add ${port} type veth peer name eth0 address ${macs[place]} netns ${machine.name}`,
    `link set ${port} master lan up`,
  ];
}

type PodPlace = "L1" | "L2" | "R1" | "R2";

/** The node's side of a pod with its own routed link, as in many network plug-ins. */
function linkTo(pod: Namespace, place: PodPlace): string[] {
  const link = place.startsWith("L") ? interfaceOf(place) : `veth${place}`;
  return [
    `link add ${link} type veth peer name eth0 netns ${pod.name}`,
    `link set ${link} up`,
    ...addresses(link, 32, podGateway(places[place])),
    ...routes([`${places[place]}/32`], (address) => `${address} dev ${link}`),
  ];
}

function connectPod(pod: Namespace, place: PodPlace): void {
  const router = podGateway(places[place]);
  pod.ip(
    ...interfacesUp,
    ...addresses("eth0", 32, places[place]),
    ...routes([`${router}/32`], (address) => `${address} dev eth0`),
    ...via(["0.0.0.0/0"], router),
  );
}

function serve(at: Record<Place, Namespace>, poller: Poller): void {
  for (const family of families) {
    for (const pod of ["L1", "L2", "R1", "R2"] as const) {
      const address = inFamily(places[pod], family);
      for (const port of podPorts) {
        serveTcp(poller, at[pod], { address, port });
        serveUdp(poller, at[pod], { address, port });
      }
      serveSctp(poller, at[pod], address);
    }
    const node = { address: inFamily(places.host, family), port: nodeServerPort };
    serveTcp(poller, at.host, node);
    serveUdp(poller, at.host, node);
  }
}

function addresses(link: string, length: 24 | 32, ...list: readonly Address[]): string[] {
  const six = length === 24 ? 64 : 128;
  return list.flatMap((address) => [
    `addr add ${address}/${length} dev ${link}`,
    `addr add ${inFamily(address, "ipv6")}/${six} dev ${link} nodad`,
  ]);
}

function routes(networks: readonly string[], route: (network: string, family: Family) => string): string[] {
  return networks.flatMap((network) =>
    families.map((family) => `route add ${route(inFamily(network, family), family)}`),
  );
}

function sourceOf(place: Place, family: Family): string {
  return `src ${inFamily(places[place], family)}`;
}

function via(networks: readonly string[], router: Address): string[] {
  return routes(networks, (network, family) => `${network} via ${inFamily(router, family)}`);
}
