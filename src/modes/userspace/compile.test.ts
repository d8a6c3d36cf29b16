// What userspace mode writes, held against the rules of kube-proxy v1.25.
import { describe, expect, it } from "vitest";
import { endpoint, ipv4Settings, ipv6Settings, routed, servicePort } from "../../../test/support/routed.ts";
import { applyInMemory, freshTables } from "../../host/iptables/memory.ts";
import type { ServicePort } from "../../model/snapshot.ts";
import { adopt } from "../../plan/iptables/adopt.ts";
import { diff, isEmptyPatch } from "../../plan/iptables/diff.ts";
import { print } from "../../plan/iptables/print.ts";
import { savedRule } from "../../plan/iptables/text.ts";
import type { IptablesPatch, IptablesPlan } from "../../plan/iptables/types.ts";
import { compile, type Relaying } from "./compile.ts";
import { foundation } from "./foundation.ts";
import { guardOf, policiesOf, poolFor, type RelayPolicy } from "./relay-policy.ts";
import { removal } from "./removal.ts";

const web = servicePort("shop/web:http", {
  nodePort: 30080,
  loadBalancerIPs: ["198.51.100.7"],
  externalIPs: ["192.168.99.5"],
  endpoints: [endpoint("10.180.0.1:8080"), endpoint("10.180.1.1:8080")],
});

/** Relays on ports 40000 and on, a port for each policy. */
const relaying = (more: Partial<Relaying> = {}): Relaying => ({
  bind: null,
  socketsOf: () => ({
    relayPorts: new Map<RelayPolicy, number>([
      ["cluster", 40000],
      ["local", 40001],
      ["external", 40002],
      ["guarded", 40003],
    ]),
    taken: new Set(),
  }),
  ...more,
});

function rules(
  ports: readonly ServicePort[],
  more: Partial<Relaying> = {},
  settings = ipv4Settings,
): string[] {
  const plan = compile(null, routed(ports, settings), relaying(more));
  return print(plan)
    .split("\n")
    .filter((line) => line.startsWith("-A KUBE-"));
}

const named = '-m comment --comment "shop/web:http" -m tcp';

describe("the rules of userspace mode", () => {
  it("21/5 redirect what comes in, and lead the node's own packets to its address", () => {
    expect(rules([web])).toEqual([
      `-A KUBE-NODEPORT-NON-LOCAL -p tcp ${named} --dport 40000 -m state --state NEW -m conntrack --ctstate DNAT -j ACCEPT`,
      `-A KUBE-PORTALS-FIREWALL -p tcp ${named} --dport 40000 -j DROP`,
      `-A KUBE-NODEPORT-CONTAINER -p tcp ${named} --dport 30080 -j REDIRECT --to-ports 40000`,
      `-A KUBE-NODEPORT-HOST -p tcp ${named} --dport 30080 -j DNAT --to-destination 192.168.0.2:40000`,
      `-A KUBE-PORTALS-CONTAINER -d 172.30.0.10/32 -p tcp ${named} --dport 80 -j REDIRECT --to-ports 40000`,
      `-A KUBE-PORTALS-CONTAINER -d 198.51.100.7/32 -p tcp ${named} --dport 80 -j REDIRECT --to-ports 40000`,
      `-A KUBE-PORTALS-CONTAINER -d 192.168.99.5/32 -p tcp ${named} --dport 80 -m physdev ! --physdev-is-in -j REDIRECT --to-ports 40000`,
      `-A KUBE-PORTALS-CONTAINER -d 192.168.99.5/32 -p tcp ${named} --dport 80 -m addrtype --dst-type LOCAL -j REDIRECT --to-ports 40000`,
      `-A KUBE-PORTALS-HOST -d 172.30.0.10/32 -p tcp ${named} --dport 80 -j DNAT --to-destination 192.168.0.2:40000`,
      `-A KUBE-PORTALS-HOST -d 198.51.100.7/32 -p tcp ${named} --dport 80 -j DNAT --to-destination 192.168.0.2:40000`,
      `-A KUBE-PORTALS-HOST -d 192.168.99.5/32 -p tcp ${named} --dport 80 -m addrtype --dst-type LOCAL -j DNAT --to-destination 192.168.0.2:40000`,
    ]);
  });

  it("21/5 lead everything to the bind address where there is one; IPv6 is written in brackets", () => {
    const targets = (lines: readonly string[]) => [
      ...new Set(lines.map((line) => line.slice(line.indexOf(" -j ") + 4))),
    ];
    expect(targets(rules([web], { bind: "192.168.0.9" }))).toEqual([
      "ACCEPT",
      "DROP",
      "DNAT --to-destination 192.168.0.9:40000",
    ]);
    const six = servicePort("shop/web:http", { family: "ipv6", clusterIP: "fd00:172:30::a" });
    expect(targets(rules([six], {}, ipv6Settings))).toEqual([
      "DROP",
      "REDIRECT --to-ports 40000",
      "DNAT --to-destination [2001:db8::2]:40000",
    ]);
  });

  it("21/4 name the ports that relays have, and leave out what has none", () => {
    expect(
      rules([web], { socketsOf: () => ({ relayPorts: new Map([["cluster", 51234]]), taken: new Set() }) })[2],
    ).toMatch(/--to-ports 51234$/);
    expect(rules([web], { socketsOf: () => ({ relayPorts: new Map(), taken: new Set() }) })).toEqual([]);
  });

  it("21/10 leave a place to the program that holds it, and nothing else", () => {
    const taken = new Set(["node/tcp/30080"]);
    const lines = rules([web], { socketsOf: (key) => ({ ...relaying().socketsOf(key), taken }) });
    expect(lines.filter((line) => line.includes("30080"))).toEqual([]);
    expect(lines).toHaveLength(8);
  });

  it("security/7: drop what was sent to the ports of relays, one rule for each relay that is needed", () => {
    const firewall = (more: Partial<ServicePort>) =>
      rules([{ ...web, ...more }]).filter((line) => line.startsWith("-A KUBE-PORTALS-FIREWALL"));
    expect(firewall({ nodePort: 0 })).toEqual([
      `-A KUBE-PORTALS-FIREWALL -p tcp ${named} --dport 40000 -j DROP`,
    ]);
    expect(firewall({ externalPolicy: "local" }).map((line) => /--dport (\d+)/.exec(line)![1])).toEqual([
      "40000",
      "40002",
    ]);
  });

  it("keep NodePorts to the networks that nodePortAddresses name", () => {
    const settings = {
      ...ipv4Settings,
      nodePortAddresses: { kind: "some", cidrs: ["192.168.0.0/24"] } as const,
    };
    expect(rules([web], {}, settings).filter((line) => line.includes("30080"))).toEqual([
      `-A KUBE-NODEPORT-CONTAINER -d 192.168.0.0/24 -p tcp ${named} --dport 30080 -j REDIRECT --to-ports 40000`,
      `-A KUBE-NODEPORT-HOST -d 192.168.0.0/24 -p tcp ${named} --dport 30080 -j DNAT --to-destination 192.168.0.2:40000`,
    ]);
  });
});

describe("policies", () => {
  const policies = (more: Partial<ServicePort>) => [...policiesOf(portRoutes(more))].sort();
  const portRoutes = (more: Partial<ServicePort>) => {
    const port = { ...web, ...more };
    return routed([port]).ports.get(port.key)!;
  };

  it("are one where nothing sets Frontends apart, and as many as differ otherwise", () => {
    expect(policies({})).toEqual(["cluster"]);
    expect(policies({ internalPolicy: "local" })).toEqual(["cluster", "local"]);
    expect(policies({ externalPolicy: "local" })).toEqual(["cluster", "external"]);
    expect(policies({ sourceRanges: ["203.0.113.0/24"] })).toEqual(["cluster", "guarded"]);
  });

  it("21/20 are none for SCTP", () => {
    const sctp = servicePort("shop/tel", { protocol: "sctp" });
    expect([...policiesOf(routed([sctp]).ports.get(sctp.key)!)]).toEqual([]);
  });

  it.each([
    ["external", "10.180.0.9", "cluster"],
    ["external", "192.168.0.2", "cluster"],
    ["external", "203.0.113.9", "local"],
    ["guarded", "203.0.113.9", "local"],
    ["guarded", "203.0.114.9", null],
    ["cluster", "203.0.114.9", "cluster"],
  ] as const)("%s lets %s have %s", (policy, client, pool) => {
    const routes = portRoutes({ externalPolicy: "local", sourceRanges: ["203.0.113.0/24"] });
    expect(poolFor(policy, client, guardOf(routes), ipv4Settings)).toBe(pool);
  });
});

describe("the tables", () => {
  const other = servicePort("shop/other", { clusterIP: "172.30.0.11", nodePort: 30081 });
  const plan = (ports: readonly ServicePort[]) => compile(null, routed(ports), relaying());
  const held = (wanted: IptablesPlan, have = freshTables("ipv4")) => applyInMemory(have, adopt(have, wanted));

  it("21/6 have jumps to ClusterIPs first and to NodePorts last, once, whatever is between", () => {
    const foreign = freshTables("ipv4");
    const nat = new Map(foreign.tables.get("nat"))
      .set("PREROUTING", ["-j OTHER-PROGRAM"])
      .set("OTHER-PROGRAM", []);
    const have = { ...foreign, tables: new Map(foreign.tables).set("nat", nat) };
    const tables = held(plan([web]), have);
    expect(
      tables.tables
        .get("nat")!
        .get("PREROUTING")!
        .map((line) => /-j (\S+)$/.exec(line)![1]),
    ).toEqual(["KUBE-PORTALS-CONTAINER", "OTHER-PROGRAM", "KUBE-NODEPORT-CONTAINER"]);
    expect(tables.tables.get("filter")!.get("INPUT")).toEqual(
      [3, 2].map((i) => savedRule(foundation.jumps[i]!.rule, "ipv4")),
    );
    expect(isEmptyPatch(adopt(tables, plan([web])))).toBe(true);
  });

  it("21/7 forget what an earlier process wrote, in the commit that writes the new rules", () => {
    const before = held(compile(null, routed([web, other]), relaying({ socketsOf: oldSockets })));
    const after = held(plan([web]), before);
    const lines = [...after.tables.values()].flatMap((chains) => [...chains.values()].flat());
    expect(lines.filter((line) => /5999\d|shop\/other/.test(line))).toEqual([]);
    expect(after).toEqual(held(plan([web])));
  });

  it("are reached step by step as they are from scratch", () => {
    const first = routed([web]);
    const second = routed([{ ...web, nodePort: 30099 }, other], ipv4Settings, first);
    const old = compile(null, first, relaying());
    const now = compile(old, second, relaying());
    const stepped = applyInMemory(held(old), diff(old, now, now.changed));
    expect(isEmptyPatch(adopt(stepped, compile(null, second, relaying())))).toBe(true);
  });

  it("21/22 hold nothing of ours after a clean-up, and can be cleaned up again", () => {
    const cleaned = applyInMemory(held(plan([web, other])), removal(held(plan([web, other]))));
    expect(cleaned).toEqual(freshTables("ipv4"));
    expect(removal(cleaned)).toEqual({ family: "ipv4", steps: [] } satisfies IptablesPatch);
  });
});

const oldSockets: Relaying["socketsOf"] = () => ({
  relayPorts: new Map([["cluster", 59991]]),
  taken: new Set(),
});
