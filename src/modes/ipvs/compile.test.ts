// What ipvs mode wants, held against the servers, sets and rules of kube-proxy v1.37.
import { describe, expect, it } from "vitest";
import { endpoint, ipv4Settings, ipv6Settings, routed, servicePort } from "../../../test/support/routed.ts";
import type { FamilySettings } from "../../config/settings.ts";
import { parseCidr } from "../../model/address.ts";
import type { ServicePort } from "../../model/snapshot.ts";
import { chainsOf } from "../../plan/iptables/plan.ts";
import { ruleInput } from "../../plan/iptables/text.ts";
import { print } from "../../plan/ipvs/print.ts";
import { compile, type IpvsOptions } from "./compile.ts";
import { setComment } from "./sets.ts";

const options: IpvsOptions = { scheduler: "", excludeCIDRs: [] };

function planOf(
  ports: readonly ServicePort[],
  settings: FamilySettings = ipv4Settings,
  more: Partial<IpvsOptions> = {},
) {
  return compile(null, routed(ports, settings), { ...options, ...more });
}

function lines(plan: ReturnType<typeof planOf>, prefix: string): string[] {
  return print(plan)
    .split("\n")
    .filter((line) => line.startsWith(prefix));
}

function serverLines(
  ports: readonly ServicePort[],
  settings?: FamilySettings,
  more?: Partial<IpvsOptions>,
): string[] {
  return print(planOf(ports, settings, more))
    .split("\n")
    .filter((line) => /^-[Aa] (-t|-u|--sctp)/.test(line));
}

const here = endpoint("10.180.0.1:8080");
const elsewhere = endpoint("10.180.1.1:8080");
const both = [here, elsewhere];

/** One Service of every kind. */
const every: readonly ServicePort[] = [
  servicePort("shop/plain", { clusterIP: "172.30.0.10", endpoints: both }),
  servicePort("shop/outside", { clusterIP: "172.30.0.11", externalIPs: ["192.168.99.5"], endpoints: both }),
  servicePort("shop/near", {
    clusterIP: "172.30.0.12",
    externalIPs: ["192.168.99.6"],
    externalPolicy: "local",
    endpoints: both,
  }),
  servicePort("shop/balanced", {
    clusterIP: "172.30.0.13",
    loadBalancerIPs: ["198.51.100.7"],
    nodePort: 30080,
    sourceRanges: ["203.0.113.0/24", "203.0.114.9/32"],
    endpoints: both,
  }),
  servicePort("shop/close", {
    clusterIP: "172.30.0.14",
    loadBalancerIPs: ["198.51.100.8"],
    nodePort: 30081,
    sourceRanges: ["192.168.0.0/16"],
    externalPolicy: "local",
    healthCheckNodePort: 31000,
    endpoints: both,
  }),
  servicePort("shop/dns", {
    clusterIP: "172.30.0.15",
    protocol: "udp",
    port: 53,
    nodePort: 30053,
    endpoints: [],
  }),
  servicePort("shop/log", {
    clusterIP: "172.30.0.16",
    protocol: "udp",
    port: 514,
    nodePort: 30514,
    externalPolicy: "local",
    endpoints: [endpoint("10.180.0.2:514", { state: "unready" })],
  }),
  servicePort("shop/signal", {
    clusterIP: "172.30.0.17",
    protocol: "sctp",
    port: 99,
    nodePort: 30099,
    endpoints: [],
  }),
  servicePort("shop/near-signal", {
    clusterIP: "172.30.0.18",
    protocol: "sctp",
    port: 99,
    nodePort: 30098,
    externalPolicy: "local",
    endpoints: [],
  }),
];

function sixth(port: ServicePort): ServicePort {
  const six = (text: string) =>
    text.replace(
      /(\d+)\.(\d+)\.(\d+)\.(\d+)/,
      (_, a, b, c, d) => `fd00:${a}:${b}:${c}::${Number(d).toString(16)}`,
    );
  const range = (text: string) =>
    parseCidr(six(text).replace(/\/(\d+)$/, (_, bits) => (bits === "32" ? "/128" : "/64")))!;
  return {
    ...port,
    family: "ipv6",
    clusterIP: six(port.clusterIP),
    externalIPs: port.externalIPs.map(six),
    loadBalancerIPs: port.loadBalancerIPs.map(six),
    sourceRanges: port.sourceRanges.map(range),
    endpoints: port.endpoints.map((each) => ({ ...each, address: six(each.address) })),
  };
}

describe("virtual servers of ipvs mode", () => {
  it("20/12 stand at every Frontend: cluster IP, external IP, load balancer, each node address", () => {
    const settings = { ...ipv4Settings, localAddresses: ["10.200.0.1", "127.0.0.1", "192.168.0.2"] };
    const port = servicePort("shop/web", {
      externalIPs: ["192.168.99.5"],
      loadBalancerIPs: ["198.51.100.7"],
      nodePort: 30080,
      endpoints: [here],
    });
    const places = [
      "10.200.0.1:30080",
      "172.30.0.10:80",
      "192.168.0.2:30080",
      "192.168.99.5:80",
      "198.51.100.7:80",
    ];
    expect(serverLines([port], settings)).toEqual(
      places.flatMap((place) => [`-A -t ${place} -s rr`, `-a -t ${place} -r 10.180.0.1:8080 -m -w 1`]),
    );
  });

  it("20/12 have the family, protocol and port of their Frontend", () => {
    const six = servicePort("shop/six", {
      family: "ipv6",
      clusterIP: "fd00:30::a",
      endpoints: [endpoint("[fd00:180::1]:80")],
    });
    expect(serverLines([six], ipv6Settings)).toEqual([
      "-A -t [fd00:30::a]:80 -s rr",
      "-a -t [fd00:30::a]:80 -r [fd00:180::1]:80 -m -w 1",
    ]);
    expect(serverLines([servicePort("shop/u", { protocol: "udp", port: 53 })])).toEqual([
      "-A -u 172.30.0.10:53 -s rr",
    ]);
    expect(serverLines([servicePort("shop/s", { protocol: "sctp" })])).toEqual([
      "-A --sctp-service 172.30.0.10:80 -s rr",
    ]);
  });

  it("20/13 are persistent for as long as the affinity says", () => {
    const sticky = servicePort("shop/web", { affinity: { seconds: 10800 } });
    expect(serverLines([sticky])).toEqual(["-A -t 172.30.0.10:80 -s rr -p 10800"]);
    expect(planOf([sticky]).servers.get("172.30.0.10:80/TCP")![0]!.server).toMatchObject({
      flags: 1,
      timeoutSeconds: 10800,
    });
  });

  it("20/14 hash the source port with scheduler mh, and not with sh", () => {
    const plain = servicePort("shop/web");
    expect(serverLines([plain], ipv4Settings, { scheduler: "mh" })).toEqual([
      "-A -t 172.30.0.10:80 -s mh -b mh-port",
    ]);
    expect(serverLines([plain], ipv4Settings, { scheduler: "sh" })).toEqual(["-A -t 172.30.0.10:80 -s sh"]);
    const sticky = { ...plain, affinity: { seconds: 5 } };
    const { server } = planOf([sticky], ipv4Settings, { scheduler: "mh" }).servers.get(
      "172.30.0.10:80/TCP",
    )![0]!;
    expect(server).toMatchObject({ flags: 0x11, timeoutSeconds: 5 });
  });

  it("where a NodePort meets an address that a Service names, the name wins whichever came first", () => {
    const named = servicePort("z/named", { externalIPs: ["192.168.0.2"], port: 30080, endpoints: [here] });
    const byPort = servicePort("a/ported", {
      clusterIP: "172.30.0.11",
      nodePort: 30080,
      endpoints: [elsewhere],
    });
    const holder = (ports: readonly ServicePort[]) =>
      planOf(ports).servers.get("192.168.0.2:30080/TCP")![0]!.owner;
    expect(holder([named, byPort])).toBe("z/named/tcp/");
    expect(holder([byPort, named])).toBe("z/named/tcp/");
    expect(holder([byPort])).toBe("a/ported/tcp/");
  });
});

describe("20/16 endpoints", () => {
  const drainingHere = endpoint("10.180.0.3:8080", { state: "draining" });
  const rows: [string, Partial<ServicePort>, string, string[]][] = [
    ["internal Cluster: all", {}, "172.30.0.10:80", ["10.180.0.1:8080", "10.180.1.1:8080"]],
    ["internal Local: those here", { internalPolicy: "local" }, "172.30.0.10:80", ["10.180.0.1:8080"]],
    [
      "internal Local, none here, no other frontend: none",
      { internalPolicy: "local", endpoints: [elsewhere] },
      "172.30.0.10:80",
      [],
    ],
    [
      "internal Local, none here, with a NodePort: those elsewhere",
      { internalPolicy: "local", nodePort: 30080, endpoints: [elsewhere] },
      "172.30.0.10:80",
      ["10.180.1.1:8080"],
    ],
    [
      "external Cluster: all",
      { nodePort: 30080 },
      "192.168.0.2:30080",
      ["10.180.0.1:8080", "10.180.1.1:8080"],
    ],
    [
      "external Local: those here",
      { nodePort: 30080, externalPolicy: "local" },
      "192.168.0.2:30080",
      ["10.180.0.1:8080"],
    ],
    [
      "external Local, none here: those elsewhere",
      { nodePort: 30080, externalPolicy: "local", endpoints: [elsewhere] },
      "192.168.0.2:30080",
      ["10.180.1.1:8080"],
    ],
    [
      "external Local, only draining ones here: these",
      { nodePort: 30080, externalPolicy: "local", endpoints: [drainingHere, elsewhere] },
      "192.168.0.2:30080",
      ["10.180.0.3:8080"],
    ],
  ];
  it.each(rows)("%s", (_, more, place, expected) => {
    const port = servicePort("shop/web", { endpoints: both, ...more });
    const { server } = planOf([port]).servers.get(`${place}/TCP`)![0]!;
    expect([...server.destinations.keys()]).toEqual(expected);
  });
});

describe("addresses of kube-ipvs0", () => {
  it("20/10 are those of cluster IPs, each once however many ports there are", () => {
    const ports = [servicePort("shop/web:http"), servicePort("shop/web:admin", { port: 81 })];
    expect(lines(planOf(ports), "address add")).toEqual(["address add 172.30.0.10/32 dev kube-ipvs0"]);
    const six = servicePort("shop/six", { family: "ipv6", clusterIP: "fd00:30::a" });
    expect(lines(planOf([six], ipv6Settings), "address add")).toEqual([
      "address add fd00:30::a/128 dev kube-ipvs0",
    ]);
  });

  it("20/11 are not those that another link has, and leave when they move there", () => {
    const port = servicePort("shop/web", {
      externalIPs: ["192.168.99.5"],
      loadBalancerIPs: ["198.51.100.7"],
    });
    const addresses = (localAddresses: string[]) =>
      [...planOf([port], { ...ipv4Settings, localAddresses }).addresses.keys()].sort();
    expect(addresses(["192.168.0.2"])).toEqual(["172.30.0.10", "192.168.99.5", "198.51.100.7"]);
    expect(addresses(["192.168.0.2", "192.168.99.5"])).toEqual(["172.30.0.10", "198.51.100.7"]);
    expect(addresses(["198.51.100.7", "192.168.99.5"])).toEqual(["172.30.0.10"]);
    // They are served there all the same.
    expect(serverLines([port], { ...ipv4Settings, localAddresses: ["192.168.99.5"] })).toContain(
      "-A -t 192.168.99.5:80 -s rr",
    );
  });

  it("20/38 NodePorts answer at every address of the node but loopback and link-local, or inside nodePortAddresses", () => {
    const port = servicePort("shop/web", { nodePort: 30080 });
    const at = (settings: FamilySettings) =>
      serverLines(
        [
          {
            ...port,
            family: settings.family,
            clusterIP: settings.family === "ipv4" ? "172.30.0.10" : "fd30::1",
          },
        ],
        settings,
      )
        .map((line) => line.split(" ")[2]!)
        .filter((place) => place.endsWith(":30080"));
    const localAddresses = ["10.9.0.1", "127.0.0.1", "192.168.0.2"];
    expect(at({ ...ipv4Settings, localAddresses })).toEqual(["10.9.0.1:30080", "192.168.0.2:30080"]);
    const some = { kind: "some", cidrs: ["192.168.0.0/24", "127.0.0.0/8"] } as const;
    expect(at({ ...ipv4Settings, localAddresses, nodePortAddresses: some })).toEqual(["192.168.0.2:30080"]);
    expect(at({ ...ipv6Settings, localAddresses: ["2001:db8::2", "::1", "fe80::1"] })).toEqual([
      "[2001:db8::2]:30080",
    ]);
  });
});

describe("sets", () => {
  it("20/27 hold of one Service of every kind what kube-proxy's hold", () => {
    expect(lines(planOf(every), "add ")).toEqual([
      "add KUBE-CLUSTER-IP 172.30.0.10,tcp:80",
      "add KUBE-CLUSTER-IP 172.30.0.11,tcp:80",
      "add KUBE-CLUSTER-IP 172.30.0.12,tcp:80",
      "add KUBE-CLUSTER-IP 172.30.0.13,tcp:80",
      "add KUBE-CLUSTER-IP 172.30.0.14,tcp:80",
      "add KUBE-CLUSTER-IP 172.30.0.15,udp:53",
      "add KUBE-CLUSTER-IP 172.30.0.16,udp:514",
      "add KUBE-CLUSTER-IP 172.30.0.17,sctp:99",
      "add KUBE-CLUSTER-IP 172.30.0.18,sctp:99",
      "add KUBE-EXTERNAL-IP 192.168.99.5,tcp:80",
      "add KUBE-EXTERNAL-IP-LOCAL 192.168.99.6,tcp:80",
      "add KUBE-HEALTH-CHECK-NODE-PORT 31000",
      ...[10, 11, 12, 13, 14, 15, 16, 17, 18].map((last) => `add KUBE-IPVS-IPS 172.30.0.${last}`),
      "add KUBE-IPVS-IPS 192.168.99.5",
      "add KUBE-IPVS-IPS 192.168.99.6",
      "add KUBE-IPVS-IPS 198.51.100.7",
      "add KUBE-IPVS-IPS 198.51.100.8",
      "add KUBE-LOAD-BALANCER 198.51.100.7,tcp:80",
      "add KUBE-LOAD-BALANCER 198.51.100.8,tcp:80",
      "add KUBE-LOAD-BALANCER-FW 198.51.100.7,tcp:80",
      "add KUBE-LOAD-BALANCER-FW 198.51.100.8,tcp:80",
      "add KUBE-LOAD-BALANCER-LOCAL 198.51.100.8,tcp:80",
      "add KUBE-LOAD-BALANCER-SOURCE-CIDR 198.51.100.7,tcp:80,203.0.113.0/24",
      "add KUBE-LOAD-BALANCER-SOURCE-CIDR 198.51.100.7,tcp:80,203.0.114.9",
      "add KUBE-LOAD-BALANCER-SOURCE-CIDR 198.51.100.8,tcp:80,192.168.0.0/16",
      "add KUBE-LOAD-BALANCER-SOURCE-IP 198.51.100.8,tcp:80,198.51.100.8",
      "add KUBE-LOOP-BACK 10.180.0.1,tcp:8080,10.180.0.1",
      "add KUBE-LOOP-BACK 10.180.0.2,udp:514,10.180.0.2",
      "add KUBE-NODE-PORT-LOCAL-SCTP-HASH 192.168.0.2,sctp:30098",
      "add KUBE-NODE-PORT-LOCAL-TCP 30081",
      "add KUBE-NODE-PORT-LOCAL-UDP 30514",
      "add KUBE-NODE-PORT-SCTP-HASH 192.168.0.2,sctp:30098",
      "add KUBE-NODE-PORT-SCTP-HASH 192.168.0.2,sctp:30099",
      "add KUBE-NODE-PORT-TCP 30080",
      "add KUBE-NODE-PORT-TCP 30081",
      "add KUBE-NODE-PORT-UDP 30053",
      "add KUBE-NODE-PORT-UDP 30514",
    ]);
  });

  it("20/27 hold the same in IPv6, under cut names", () => {
    const four = lines(planOf(every), "add ").map((line) => line.split(" ")[1]!);
    const six = lines(planOf(every.map(sixth), ipv6Settings), "add ").map((line) => line.split(" ")[1]!);
    const renamed = four.map((name) => name.replace("KUBE-", "KUBE-6-").slice(0, 31));
    // The node is inside no range there, so the entry that lets it in is missing.
    expect(six).toEqual(renamed.filter((name) => name !== "KUBE-6-LOAD-BALANCER-SOURCE-IP"));
    expect(lines(planOf(every.map(sixth), ipv6Settings), "add KUBE-6-LOAD-BALANCER-SOURCE-CID")).toEqual([
      "add KUBE-6-LOAD-BALANCER-SOURCE-CID fd00:198:51:100::7,tcp:80,fd00:203:0:113::/64",
      "add KUBE-6-LOAD-BALANCER-SOURCE-CID fd00:198:51:100::7,tcp:80,fd00:203:0:114::9",
      "add KUBE-6-LOAD-BALANCER-SOURCE-CID fd00:198:51:100::8,tcp:80,fd00:192:168::/64",
    ]);
  });

  it("20/29 know no ranges where there are none for the family", () => {
    const open = servicePort("shop/web", { loadBalancerIPs: ["198.51.100.7"], sourceRanges: [] });
    const plan = planOf([open]);
    expect(lines(plan, "add KUBE-LOAD-BALANCER")).toEqual(["add KUBE-LOAD-BALANCER 198.51.100.7,tcp:80"]);
    expect(lines(plan, "-A KUBE-IPVS-OUT-FILTER")).toEqual([]);
  });

  it("20/39 list every node address for an SCTP NodePort", () => {
    const port = servicePort("shop/signal", { protocol: "sctp", nodePort: 30099 });
    const settings = { ...ipv4Settings, localAddresses: ["10.9.0.1", "127.0.0.1", "192.168.0.2"] };
    expect(lines(planOf([port], settings), "add KUBE-NODE-PORT-SCTP-HASH")).toEqual([
      "add KUBE-NODE-PORT-SCTP-HASH 10.9.0.1,sctp:30099",
      "add KUBE-NODE-PORT-SCTP-HASH 192.168.0.2,sctp:30099",
    ]);
  });

  it("20/40 hold the health-check port even where NodePorts answer nowhere", () => {
    const port = servicePort("shop/web", {
      externalPolicy: "local",
      nodePort: 30080,
      healthCheckNodePort: 31000,
    });
    const nowhere = { ...ipv4Settings, nodePortAddresses: { kind: "some", cidrs: ["127.0.0.0/8"] } } as const;
    expect(lines(planOf([port], nowhere), "add KUBE-HEALTH")).toEqual([
      "add KUBE-HEALTH-CHECK-NODE-PORT 31000",
    ]);
    expect(lines(planOf([port], nowhere), "add KUBE-NODE-PORT")).toEqual([]);
  });
});

/** The rules of kube-proxy's restore for the fixture, chain by chain, as its reference has them. */
function expected(family: "ipv4" | "ipv6", clusterIP: string): Record<string, string[]> {
  const name = (short: string) => (family === "ipv4" ? `KUBE-${short}` : `KUBE-6-${short}`.slice(0, 31));
  const set = (short: string, sides: string) => `-m set --match-set ${name(short)} ${sides}`;
  const note = (role: Parameters<typeof setComment>[0]) => `-m comment --comment "${setComment(role)}"`;
  const mark = "0x00004000";
  return {
    "nat KUBE-SERVICES": [
      `-s ${family === "ipv4" ? "127.0.0.0/8" : "::1/128"} -j RETURN`,
      `${note("loadBalancer")} ${set("LOAD-BALANCER", "dst,dst")} -j KUBE-LOAD-BALANCER`,
      `${note("clusterIP")} ${set("CLUSTER-IP", clusterIP)} -j KUBE-MARK-MASQ`,
      `${note("externalIP")} ${set("EXTERNAL-IP", "dst,dst")} -j KUBE-MARK-MASQ`,
      `${note("externalIP")} ${set("EXTERNAL-IP", "dst,dst")} -m physdev ! --physdev-is-in -m addrtype ! --src-type LOCAL -j ACCEPT`,
      `${note("externalIP")} ${set("EXTERNAL-IP", "dst,dst")} -m addrtype --dst-type LOCAL -j ACCEPT`,
      `${note("externalIPLocal")} ${set("EXTERNAL-IP-LOCAL", "dst,dst")} -m physdev ! --physdev-is-in -m addrtype ! --src-type LOCAL -j ACCEPT`,
      `${note("externalIPLocal")} ${set("EXTERNAL-IP-LOCAL", "dst,dst")} -m addrtype --dst-type LOCAL -j ACCEPT`,
      "-m addrtype --dst-type LOCAL -j KUBE-NODE-PORT",
      `${set("CLUSTER-IP", "dst,dst")} -j ACCEPT`,
      `${set("LOAD-BALANCER", "dst,dst")} -j ACCEPT`,
    ],
    "nat KUBE-LOAD-BALANCER": [
      `${note("loadBalancerLocal")} ${set("LOAD-BALANCER-LOCAL", "dst,dst")} -j RETURN`,
      "-j KUBE-MARK-MASQ",
    ],
    "nat KUBE-NODE-PORT": [
      `-p tcp ${note("nodePortLocalTcp")} ${set("NODE-PORT-LOCAL-TCP", "dst")} -j RETURN`,
      `-p tcp ${note("nodePortTcp")} ${set("NODE-PORT-TCP", "dst")} -j KUBE-MARK-MASQ`,
      `-p udp ${note("nodePortLocalUdp")} ${set("NODE-PORT-LOCAL-UDP", "dst")} -j RETURN`,
      `-p udp ${note("nodePortUdp")} ${set("NODE-PORT-UDP", "dst")} -j KUBE-MARK-MASQ`,
      `-p sctp ${note("nodePortLocalSctp")} ${set("NODE-PORT-LOCAL-SCTP-HASH", "dst,dst")} -j RETURN`,
      `-p sctp ${note("nodePortSctp")} ${set("NODE-PORT-SCTP-HASH", "dst,dst")} -j KUBE-MARK-MASQ`,
    ],
    "nat KUBE-POSTROUTING": [
      `${note("loopBack")} ${set("LOOP-BACK", "dst,dst,src")} -j MASQUERADE`,
      `-m mark ! --mark ${mark}/${mark} -j RETURN`,
      `-j MARK --xor-mark ${mark}`,
      '-m comment --comment "kubernetes service traffic requiring SNAT" -j MASQUERADE --random-fully',
    ],
    "nat KUBE-MARK-MASQ": [`-j MARK --or-mark ${mark}`],
    "filter KUBE-PROXY-FIREWALL": [
      `${note("firewall")} ${set("LOAD-BALANCER-FW", "dst,dst")} -j KUBE-SOURCE-RANGES-FIREWALL`,
    ],
    "filter KUBE-SOURCE-RANGES-FIREWALL": [
      `${note("sourceCidr")} ${set("LOAD-BALANCER-SOURCE-CIDR", "dst,dst,src")} -j RETURN`,
      ...(family === "ipv4"
        ? [`${note("sourceIP")} ${set("LOAD-BALANCER-SOURCE-IP", "dst,dst,src")} -j RETURN`]
        : []),
      "-j DROP",
    ],
    "filter KUBE-FORWARD": [
      `-m comment --comment "kubernetes forwarding rules" -m mark --mark ${mark}/${mark} -j ACCEPT`,
      '-m comment --comment "kubernetes forwarding conntrack rule" -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT',
    ],
    "filter KUBE-NODE-PORT": [`${note("healthCheck")} ${set("HEALTH-CHECK-NODE-PORT", "dst")} -j ACCEPT`],
    "filter KUBE-IPVS-FILTER": [
      `${set("LOAD-BALANCER", "dst,dst")} -j RETURN`,
      `${set("CLUSTER-IP", "dst,dst")} -j RETURN`,
      `${set("EXTERNAL-IP", "dst,dst")} -j RETURN`,
      `${set("EXTERNAL-IP-LOCAL", "dst,dst")} -j RETURN`,
      `${set("HEALTH-CHECK-NODE-PORT", "dst")} -j RETURN`,
      `-m conntrack --ctstate NEW ${set("IPVS-IPS", "dst")} -j REJECT`,
    ],
    "filter KUBE-IPVS-OUT-FILTER":
      family === "ipv4"
        ? ["-s 198.51.100.7 -m ipvs --vaddr 198.51.100.7 --vproto tcp --vport 80 -j DROP"]
        : ["fd00:198:51:100::7", "fd00:198:51:100::8"]
            .sort()
            .map((vip) => `-s ${vip} -m ipvs --vaddr ${vip} --vproto tcp --vport 80 -j DROP`),
  };
}

function rulesOf(ports: readonly ServicePort[], settings: FamilySettings): Record<string, string[]> {
  const { tables } = planOf(ports, settings);
  const chains = (["nat", "filter"] as const).flatMap((table) => chainsOf(tables, table));
  return Object.fromEntries(
    chains.map(({ table, name, rules }) => [`${table} ${name}`, rules.map(ruleInput)]),
  );
}

describe("rules", () => {
  const forms: [string, Partial<FamilySettings>, string][] = [
    ["a pod network", {}, "dst,dst ! -s 10.0.0.0/8"],
    ["an interface", { detector: { kind: "interface", name: "cni0" } }, "dst,dst ! -i cni0"],
    [
      "a prefix of interfaces",
      { detector: { kind: "interfacePrefix", prefix: "veth" } },
      "dst,dst ! -i veth+",
    ],
    ["nothing", { detector: { kind: "none" } }, "src,dst"],
    ["nothing, masqueradeAll", { detector: { kind: "none" }, masqueradeAll: true }, "dst,dst"],
    ["a pod network, masqueradeAll", { masqueradeAll: true }, "dst,dst"],
  ];
  it.each(forms)("20/30 are kube-proxy's, line by line, where pods are known by %s", (_, more, clusterIP) => {
    expect(rulesOf(every, { ...ipv4Settings, ...more })).toEqual(expected("ipv4", clusterIP));
  });

  it("20/30 are kube-proxy's in IPv6", () => {
    expect(rulesOf(every.map(sixth), ipv6Settings)).toEqual(expected("ipv6", "dst,dst ! -s fd00::/8"));
  });

  it("20/31 about an empty set are left out, except those that always stand", () => {
    const all = expected("ipv4", "");
    const filter = all["filter KUBE-IPVS-FILTER"]!;
    expect(rulesOf([], ipv4Settings)).toEqual({
      "nat KUBE-SERVICES": ["-s 127.0.0.0/8 -j RETURN", "-m addrtype --dst-type LOCAL -j KUBE-NODE-PORT"],
      "nat KUBE-LOAD-BALANCER": ["-j KUBE-MARK-MASQ"],
      "nat KUBE-NODE-PORT": [],
      "nat KUBE-POSTROUTING": all["nat KUBE-POSTROUTING"]!.slice(1),
      "nat KUBE-MARK-MASQ": all["nat KUBE-MARK-MASQ"],
      "filter KUBE-PROXY-FIREWALL": [],
      "filter KUBE-SOURCE-RANGES-FIREWALL": ["-j DROP"],
      "filter KUBE-FORWARD": all["filter KUBE-FORWARD"],
      "filter KUBE-NODE-PORT": all["filter KUBE-NODE-PORT"],
      "filter KUBE-IPVS-FILTER": filter,
      "filter KUBE-IPVS-OUT-FILTER": [],
    });
  });

  it("20/32 are led to in kube-proxy's order", () => {
    const { jumps } = planOf([]).tables.foundation;
    const order = (table: string, chain: string) =>
      jumps
        .filter((jump) => jump.table === table && jump.chain === chain)
        .map(({ rule }) => (rule.target.kind === "jump" ? rule.target.chain : ""))
        .reverse();
    expect(order("filter", "INPUT")).toEqual(["KUBE-IPVS-FILTER", "KUBE-PROXY-FIREWALL", "KUBE-NODE-PORT"]);
    expect(order("filter", "FORWARD")).toEqual(["KUBE-PROXY-FIREWALL", "KUBE-FORWARD"]);
    expect(order("filter", "OUTPUT")).toEqual(["KUBE-IPVS-OUT-FILTER"]);
    expect(order("nat", "OUTPUT")).toEqual(["KUBE-SERVICES"]);
    expect(order("nat", "PREROUTING")).toEqual(["KUBE-SERVICES"]);
    expect(order("nat", "POSTROUTING")).toEqual(["KUBE-POSTROUTING"]);
    expect(ruleInput(jumps[7]!.rule)).toBe(
      '-m comment --comment "kubernetes ipvs access filter" -j KUBE-IPVS-FILTER',
    );
  });
});
