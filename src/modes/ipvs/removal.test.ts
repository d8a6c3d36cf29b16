// Clean-up takes what ipvs mode made, and nothing of others.
import { describe, expect, it } from "vitest";
import { endpoint, ipv4Settings, ipv6Settings, routed, servicePort } from "../../../test/support/routed.ts";
import { applyInMemory, freshTables } from "../../host/iptables/memory.ts";
import type { ServicePort } from "../../model/snapshot.ts";
import { adopt as adoptTables } from "../../plan/iptables/adopt.ts";
import type { HostTables, IptablesPatch, TableName } from "../../plan/iptables/types.ts";
import { printOperation } from "../../plan/ipvs/print.ts";
import { freshState } from "../../plan/ipvs/state.ts";
import type { HeldServer, IpvsState, Operation } from "../../plan/ipvs/types.ts";
import { compile } from "./compile.ts";
import { hasConnections, ipvsRelease, ipvsRemoval, rulesRemoval } from "./removal.ts";
import { setsOf } from "./sets.ts";

const web = (family: "ipv4" | "ipv6"): ServicePort =>
  servicePort("shop/web", {
    family,
    clusterIP: family === "ipv4" ? "172.30.0.10" : "fd30::a",
    nodePort: 30080,
    endpoints: [endpoint(family === "ipv4" ? "10.180.0.1:80" : "[fd00:180::1]:80")],
  });

const settings = { ipv4: ipv4Settings, ipv6: ipv6Settings };

describe.each(["ipv4", "ipv6"] as const)("clean-up of ipvs mode, %s", (family) => {
  const { tables } = compile(null, routed([web(family)], settings[family]), {
    scheduler: "",
    excludeCIDRs: [],
  });
  const fresh = freshTables(family);
  const held = applyInMemory(fresh, adoptTables(fresh, tables));

  it("20/44 leaves no jump and no chain, and is safe to repeat", () => {
    const cleaned = applyInMemory(held, rulesRemoval(held));
    expect(cleaned).toEqual(fresh);
    expect(rulesRemoval(cleaned).steps).toEqual([]);
  });

  it("behaviour/5: takes out KUBE-FIREWALL of earlier releases from nat, and leaves the kubelet's in filter", () => {
    const withChain = (table: TableName) => new Map(held.tables.get(table)).set("KUBE-FIREWALL", []);
    const tables = new Map(held.tables);
    for (const table of ["nat", "filter"] as const) tables.set(table, withChain(table));
    const older = { ...held, tables };
    const cleaned = applyInMemory(older, rulesRemoval(older));
    expect(cleaned.tables.get("nat")).toEqual(fresh.tables.get("nat"));
    expect([...cleaned.tables.get("filter")!.keys()]).toContain("KUBE-FIREWALL");
  });

  it("leaves a chain that a foreign rule leads to, and what that chain leads to", () => {
    const foreign: IptablesPatch = {
      family,
      steps: [
        {
          table: "nat",
          write: [],
          remove: [],
          prepend: [],
          append: [
            {
              table: "nat",
              chain: "OUTPUT",
              owner: null,
              rule: { match: [], target: { kind: "jump", chain: "KUBE-LOAD-BALANCER" } },
            },
          ],
          doom: [],
        },
      ],
    };
    const used: HostTables = applyInMemory(held, foreign);
    const cleaned = applyInMemory(used, rulesRemoval(used));
    const left = [...cleaned.tables.get("nat")!.keys()].filter((name) => name.startsWith("KUBE-"));
    expect(left.sort()).toEqual(["KUBE-LOAD-BALANCER", "KUBE-MARK-MASQ"]);
  });
});

const server = (
  address: string,
  port: number,
  protocol: HeldServer["protocol"] = "tcp",
): [string, HeldServer] => [
  `${address}:${port}/${protocol}`,
  { address, port, protocol, scheduler: "rr", flags: 0, timeoutSeconds: 0, destinations: new Map() },
];

describe("what IPVS holds", () => {
  const entries: Record<string, string[]> = {
    "KUBE-LOAD-BALANCER": ["198.51.100.7,tcp:80"],
    "KUBE-NODE-PORT-TCP": ["30080"],
    "KUBE-NODE-PORT-UDP": ["30053"],
    "KUBE-NODE-PORT-SCTP-HASH": ["192.168.0.2,sctp:30099"],
  };
  const state: IpvsState = {
    ...freshState("ipv4"),
    link: "dummy",
    addresses: new Set(["172.30.0.10"]),
    servers: new Map([
      server("172.30.0.10", 80),
      server("198.51.100.7", 80),
      server("192.168.0.2", 30080),
      server("192.168.0.2", 30053, "udp"),
      server("192.168.0.2", 30099, "sctp"),
      server("10.99.0.1", 80),
      server("192.168.0.2", 30080, "udp"),
    ]),
    sets: new Map(
      setsOf("ipv4").map(({ name, type }) => [
        name,
        { type, family: "ipv4" as const, maxElements: 65_536, entries: new Set(entries[name] ?? []) },
      ]),
    ),
  };
  const texts = (operations: readonly Operation[]) => operations.map(printOperation);

  it("20/44 goes: servers that are ours, the link, then all sets; servers of others stay", () => {
    expect(texts(ipvsRemoval(state)).slice(0, 6)).toEqual([
      "delete server 172.30.0.10:80/TCP",
      "delete server 198.51.100.7:80/TCP",
      "delete server 192.168.0.2:30080/TCP",
      "delete server 192.168.0.2:30053/UDP",
      "delete server 192.168.0.2:30099/SCTP",
      "delete link",
    ]);
    expect(texts(ipvsRemoval(state)).slice(6)).toEqual(
      setsOf("ipv4").map(({ name }) => `destroy set ${name}`),
    );
    expect(ipvsRemoval(freshState("ipv4"))).toEqual([]);
  });

  it("while another mode runs, only what no connection needs is removed", () => {
    const [name, web] = server("172.30.0.10", 80);
    const at = (address: string, active: number, weight = 1) =>
      [`${address}:8080`, { address, port: 8080, weight, active, inactive: 0 }] as const;
    const destinations = new Map([at("10.180.0.1", 1), at("10.180.0.2", 0), at("10.180.0.3", 0, 0)]);
    const busy: IpvsState = {
      ...state,
      addresses: new Set(["172.30.0.10", "198.51.100.7"]),
      servers: new Map([...state.servers, [name, { ...web, destinations }]]),
    };
    expect([hasConnections(state), hasConnections(busy)]).toEqual([false, true]);
    expect(texts(ipvsRelease(busy))).toEqual([
      "set destination 172.30.0.10:80/TCP 10.180.0.1:8080 weight 0",
      "set destination 172.30.0.10:80/TCP 10.180.0.2:8080 weight 0",
      "delete server 198.51.100.7:80/TCP",
      "delete server 192.168.0.2:30080/TCP",
      "delete server 192.168.0.2:30053/UDP",
      "delete server 192.168.0.2:30099/SCTP",
      "delete address 198.51.100.7",
    ]);
    const others: IpvsState = { ...busy, link: "other" };
    expect(texts(ipvsRelease(others)).filter((line) => line.includes("address"))).toEqual([]);
  });

  it("20/44 the sets of IPv6 go too; a link of another kind stays, without what we put there", () => {
    const ours = new Set(["fd00:30::a"]);
    const six = setsOf("ipv6").map(
      ({ name, type }) =>
        [
          name,
          {
            type,
            family: "ipv6" as const,
            maxElements: 65_536,
            entries: name === "KUBE-6-IPVS-IPS" ? ours : new Set<string>(),
          },
        ] as const,
    );
    const held = { addresses: new Set(["fd00:30::a", "fd00:99::1"]), sets: new Map(six) };
    expect(texts(ipvsRemoval({ ...freshState("ipv6"), link: "other", ...held }))).toEqual([
      "delete address fd00:30::a",
      ...setsOf("ipv6").map(({ name }) => `destroy set ${name}`),
    ]);
  });
});
