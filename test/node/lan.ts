// The network of the test cluster: a switch with the control plane and three nodes, each in a network namespace of its own.
import { families } from "../../src/model/address.ts";
import { createNamespace, type Namespace, sweepNamespaces } from "../kernel/netns.ts";
import { inFamily, twin } from "../places.ts";

export type NodeName = "node-a" | "node-b" | "node-c";

/** Upstream's tests of traffic distribution need three zones; each node is one. */
export const nodeNames: readonly NodeName[] = ["node-a", "node-b", "node-c"];

/** Addresses are IPv4; each has its IPv6 twin on the same interface. */
export const addresses = {
  outside: "192.168.0.1",
  plane: "192.168.0.10",
  "node-a": "192.168.0.2",
  "node-b": "192.168.0.3",
  "node-c": "192.168.0.4",
} as const;

export const podNetworks: Readonly<Record<NodeName, string>> = {
  "node-a": "10.180.0.0/24",
  "node-b": "10.180.1.0/24",
  "node-c": "10.180.2.0/24",
};

export const podNetwork = "10.180.0.0/16";
export const serviceNetwork = "172.30.0.0/16";

export type Lan = {
  /** The switch, which is also the client outside the cluster. */
  readonly outside: Namespace;
  readonly plane: Namespace;
  readonly nodes: Readonly<Record<NodeName, Namespace>>;
  close(): void;
};

export function createLan(): Lan {
  sweepNamespaces();
  const made: Namespace[] = [];
  const make = (label: string): Namespace => {
    const netns = createNamespace(label);
    made.push(netns);
    netns.sysctl({
      "net.ipv4.ip_forward": 1,
      "net.ipv6.conf.all.forwarding": 1,
      "net.ipv6.conf.all.accept_dad": 0,
      "net.ipv6.conf.default.accept_dad": 0,
    });
    netns.ip("link set lo up");
    return netns;
  };
  const close = (): void => {
    for (const netns of made) netns.remove();
  };
  try {
    const lan: Lan = {
      outside: make("lan"),
      plane: make("plane"),
      nodes: { "node-a": make("node-a"), "node-b": make("node-b"), "node-c": make("node-c") },
      close,
    };
    connect(lan);
    return lan;
  } catch (error) {
    close();
    throw error;
  }
}

function connect({ outside, plane, nodes }: Lan): void {
  outside.ip("link add lan type bridge", "link set lan up", ...address(addresses.outside, "lan"));
  attach(outside, plane, addresses.plane);
  for (const name of nodeNames) attach(outside, nodes[name], addresses[name]);
  // Pods of a node are reached through it. A bridge learns; routes do not.
  for (const from of [outside, plane, ...nodeNames.map((name) => nodes[name])])
    for (const name of nodeNames) if (from !== nodes[name]) from.ip(...routesTo(name));
  const { outside: gateway } = addresses;
  for (const netns of [plane, ...nodeNames.map((name) => nodes[name])])
    netns.ip(`route add 0.0.0.0/0 via ${gateway}`, `route add ::/0 via ${twin(gateway)}`);
}

function attach(outside: Namespace, netns: Namespace, at: string): void {
  const port = `p${at.split(".").at(-1)}`;
  outside.ip(
    `link add ${port} type veth peer name eth0 netns ${netns.name}`,
    `link set ${port} master lan`,
    `link set ${port} up`,
  );
  netns.ip("link set eth0 up", ...address(at, "eth0"));
}

function address(at: string, device: string): string[] {
  return [`addr add ${at}/24 dev ${device}`, `addr add ${twin(at)}/64 dev ${device} nodad`];
}

function routesTo(name: NodeName): string[] {
  return families.map(
    (family) => `route add ${inFamily(podNetworks[name], family)} via ${inFamily(addresses[name], family)}`,
  );
}
