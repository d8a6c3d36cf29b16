// The network layout: addresses, and the `ip` commands that configure them. Pure.
import { namespaceName, playgroundNodes } from "../../src/inspect/playgrounds.ts";
import type { Family } from "../../src/model/address.ts";
import type { Commands } from "./namespaces.ts";

export type NodePlace = {
  readonly name: string;
  readonly zone: string;
  readonly addresses: Readonly<Record<Family, string>>;
  readonly podCIDRs: Readonly<Record<Family, string>>;
};

const [nodeA, nodeB] = playgroundNodes;
export const nodePlaces: readonly NodePlace[] = [nodePlace(nodeA, "a", 1), nodePlace(nodeB, "b", 2)];

export const serviceCIDRs: Readonly<Record<Family, string>> = { ipv4: "172.30.0.0/16", ipv6: "fd30::/112" };

/** Clients outside the cluster; the second is outside the source ranges of the example. */
export const outsideAddresses: readonly string[] = ["203.0.113.9", "203.0.113.200", "2001:db8:9::9"];

/** Load-balancer addresses, routed to the first node. */
export const loadBalancerCIDR = "198.51.100.0/24";

const router = {
  toNodes: { ipv4: "192.168.0.1", ipv6: "2001:db8::1" },
  toOutside: { ipv4: "203.0.113.1", ipv6: "2001:db8:9::1" },
} as const;

function nodePlace(name: string, zone: string, index: number): NodePlace {
  return {
    name,
    zone,
    addresses: { ipv4: `192.168.0.${index + 1}`, ipv6: `2001:db8::${index + 1}` },
    podCIDRs: { ipv4: `10.0.${index}.0/24`, ipv6: `fd00:${index}::/64` },
  };
}

export function podAddresses(node: NodePlace, index: number): Readonly<Record<Family, string>> {
  return {
    ipv4: node.podCIDRs.ipv4.replace(/0\/24$/, String(index)),
    ipv6: node.podCIDRs.ipv6.replace(/\/64$/, index.toString(16)),
  };
}

/** Everything but the pods: a router, the nodes on its bridge, and the outside. */
export function foundationCommands(): Commands {
  const lan = namespaceName("lan");
  const outside = namespaceName("outside");
  const first = nodePlaces[0]!;
  return new Map([
    [
      lan,
      [
        "link set lo up",
        "link add lan type bridge",
        "link set lan up",
        `addr add ${router.toNodes.ipv4}/24 dev lan`,
        `addr add ${router.toNodes.ipv6}/64 dev lan nodad`,
        `link add outside type veth peer name eth0 netns ${outside}`,
        "link set outside up",
        `addr add ${router.toOutside.ipv4}/24 dev outside`,
        `addr add ${router.toOutside.ipv6}/64 dev outside nodad`,
        ...nodePlaces.flatMap(({ name, addresses, podCIDRs }) => [
          `link add ${name} type veth peer name eth0 netns ${namespaceName(name)}`,
          `link set ${name} master lan up`,
          `route add ${podCIDRs.ipv4} via ${addresses.ipv4}`,
          `route add ${podCIDRs.ipv6} via ${addresses.ipv6}`,
        ]),
        `route add ${loadBalancerCIDR} via ${first.addresses.ipv4}`,
      ],
    ],
    [
      outside,
      [
        "link set lo up",
        "link set eth0 up",
        ...outsideAddresses.map((address) =>
          address.includes(":") ? `addr add ${address}/64 dev eth0 nodad` : `addr add ${address}/24 dev eth0`,
        ),
        ...defaultRoutes(router.toOutside),
      ],
    ],
    ...nodePlaces.map((node) => [namespaceName(node.name), nodeCommands(node)] as const),
  ]);
}

function nodeCommands(node: NodePlace): string[] {
  return [
    "link set lo up",
    "link set eth0 up",
    `addr add ${node.addresses.ipv4}/24 dev eth0`,
    `addr add ${node.addresses.ipv6}/64 dev eth0 nodad`,
    ...defaultRoutes(router.toNodes),
    ...nodePlaces
      .filter((other) => other !== node)
      .flatMap(({ podCIDRs, addresses }) => [
        `route add ${podCIDRs.ipv4} via ${addresses.ipv4}`,
        `route add ${podCIDRs.ipv6} via ${addresses.ipv6}`,
      ]),
  ];
}

/** A pod with its own routed link, as in many network plug-ins. */
export function podCommands(netns: string, node: NodePlace, link: string, index: number): Commands {
  const pod = podAddresses(node, index);
  const gateway = podAddresses(node, 254);
  return new Map([
    [
      namespaceName(node.name),
      [
        `link add ${link} type veth peer name eth0 netns ${netns}`,
        `link set ${link} up`,
        // Link scope, so that masqueraded packets have the address of the node.
        `addr add ${gateway.ipv4}/32 dev ${link} scope link`,
        `addr add ${gateway.ipv6}/128 dev ${link} nodad`,
        // The link of the previous pod with this address may still exist.
        `route replace ${pod.ipv4}/32 dev ${link}`,
        `route replace ${pod.ipv6}/128 dev ${link}`,
      ],
    ],
    [
      netns,
      [
        "link set lo up",
        "link set eth0 up",
        `addr add ${pod.ipv4}/32 dev eth0`,
        `addr add ${pod.ipv6}/128 dev eth0 nodad`,
        `route add ${gateway.ipv4}/32 dev eth0`,
        `route add ${gateway.ipv6}/128 dev eth0`,
        ...defaultRoutes(gateway),
      ],
    ],
  ]);
}

/** Sysctls of forwarding namespaces; replies may take another route than requests. */
export const routerSysctls: readonly (readonly [string, string])[] = [
  ["net/ipv4/ip_forward", "1"],
  ["net/ipv6/conf/all/forwarding", "1"],
  ["net/ipv4/conf/all/rp_filter", "0"],
  ["net/ipv4/conf/default/rp_filter", "0"],
  ["net/ipv4/conf/all/send_redirects", "0"],
  ["net/ipv4/conf/default/send_redirects", "0"],
  ["net/ipv4/icmp_ratelimit", "0"],
  ["net/ipv6/icmp/ratelimit", "0"],
  ["net/bridge/bridge-nf-call-iptables", "0"],
  ["net/bridge/bridge-nf-call-ip6tables", "0"],
];

function defaultRoutes(via: Readonly<Record<Family, string>>): string[] {
  return [`route add 0.0.0.0/0 via ${via.ipv4}`, `route add ::/0 via ${via.ipv6}`];
}
