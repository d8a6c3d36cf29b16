// The operations between two states of IPVS: which, in which order, and how removed real servers drain.
import { describe, expect, it } from "vitest";
import { endpoint, ipv4Settings, routed, servicePort } from "../../../test/support/routed.ts";
import type { FamilySettings } from "../../config/resolve/settings.ts";
import type { ServicePort } from "../../model/snapshot.ts";
import { compile, type IpvsOptions } from "../../modes/ipvs/compile.ts";
import { adopt } from "./adopt.ts";
import { diff } from "./diff.ts";
import { type Draining, settle } from "./drain.ts";
import { printOperation } from "./print.ts";
import { freshState } from "./state.ts";
import type { HeldServer, HeldSet, IpvsPlan, IpvsState, Operation } from "./types.ts";

const options: IpvsOptions = { scheduler: "", excludeCIDRs: [] };
const none: Draining = new Map();

function planOf(
  ports: readonly ServicePort[],
  more: Partial<IpvsOptions> = {},
  settings: FamilySettings = ipv4Settings,
): IpvsPlan {
  return compile(null, routed(ports, settings), { ...options, ...more });
}

function texts(operations: readonly Operation[]): string[] {
  return operations.map(printOperation);
}

function change(have: IpvsPlan, want: IpvsPlan, draining: Draining = none) {
  const { patch, draining: after } = diff(
    have,
    want,
    new Set([...have.fragments.keys(), ...want.fragments.keys()]),
    draining,
  );
  return { grow: texts(patch.grow), shrink: texts(patch.shrink), draining: after };
}

/** A host that holds exactly what a Plan wants. */
function heldBy(plan: IpvsPlan): IpvsState {
  const sets = plan.sets.map(({ name, type, family }): [string, HeldSet] => {
    const isBitmap = type === "bitmap:port";
    const entries = [...plan.entries.keys()]
      .filter((key) => key.startsWith(`${name} `))
      .map((key) => key.slice(name.length + 1));
    return [
      name,
      {
        type,
        family: isBitmap ? null : family,
        maxElements: isBitmap ? null : 65_536,
        entries: new Set(entries),
      },
    ];
  });
  const servers = [...plan.servers.entries()].map(([key, claims]): [string, HeldServer] => {
    const { server } = claims[0]!;
    const destinations = [...server.destinations].map(
      ([id, at]) => [id, { ...at, weight: 1, active: 0, inactive: 0 }] as const,
    );
    return [key, { ...server, destinations: new Map(destinations) }];
  });
  return {
    family: plan.family,
    link: "dummy",
    addresses: new Set(plan.addresses.keys()),
    servers: new Map(servers),
    sets: new Map(sets),
  };
}

const one = endpoint("10.180.1.1:8080");
const two = endpoint("10.180.1.2:8080");
const web = (...endpoints: ServicePort["endpoints"][number][]) => servicePort("shop/web", { endpoints });

describe("from Plan to Plan", () => {
  it("a new Service: entries, then the server with its destinations, then the address", () => {
    expect(change(planOf([]), planOf([web(one)]))).toEqual({
      grow: [
        "add entry KUBE-CLUSTER-IP 172.30.0.10,tcp:80",
        "add entry KUBE-IPVS-IPS 172.30.0.10",
        "add server 172.30.0.10:80/TCP",
        "add destination 172.30.0.10:80/TCP 10.180.1.1:8080 weight 1",
        "add address 172.30.0.10",
      ],
      shrink: [],
      draining: none,
    });
  });

  it("20/24 a Service that goes: entries, then the address, then the server, and all of it after the rules", () => {
    expect(change(planOf([web(one)]), planOf([]))).toEqual({
      grow: [],
      shrink: [
        "delete entry KUBE-IPVS-IPS 172.30.0.10",
        "delete entry KUBE-CLUSTER-IP 172.30.0.10,tcp:80",
        "delete address 172.30.0.10",
        "delete server 172.30.0.10:80/TCP",
      ],
      draining: none,
    });
  });

  it("20/10 an address stays as long as one port of it does", () => {
    const admin = servicePort("shop/web:admin", { port: 81 });
    const { grow, shrink } = change(planOf([web(), admin]), planOf([admin]));
    expect(grow).toEqual([]);
    expect(shrink).toEqual([
      "delete entry KUBE-CLUSTER-IP 172.30.0.10,tcp:80",
      "delete server 172.30.0.10:80/TCP",
    ]);
  });

  it("20/15 another scheduler, and 20/13 another affinity, are set on the server that is there", () => {
    const sticky = { ...web(one), affinity: { seconds: 60 } };
    expect(change(planOf([web(one)]), planOf([web(one)], { scheduler: "lc" })).grow).toEqual([
      "set server 172.30.0.10:80/TCP",
    ]);
    expect(change(planOf([web(one)]), planOf([sticky])).grow).toEqual(["set server 172.30.0.10:80/TCP"]);
    expect(change(planOf([sticky]), planOf([web(one)])).grow).toEqual(["set server 172.30.0.10:80/TCP"]);
  });

  it("20/28 the same Plan needs no operations, not even for ranges of one address", () => {
    const guarded = servicePort("shop/lb", {
      loadBalancerIPs: ["198.51.100.7"],
      sourceRanges: ["203.0.113.9/32"],
    });
    const want = planOf([guarded]);
    expect(change(planOf([guarded]), want)).toEqual({ grow: [], shrink: [], draining: none });
    const { patch } = adopt(heldBy(want), want);
    expect([...patch.grow, ...patch.shrink]).toEqual([]);
  });

  it("allowed sources are in place before the guard, and until it is gone", () => {
    const open = servicePort("shop/lb", { loadBalancerIPs: ["198.51.100.7"] });
    const guarded = { ...open, sourceRanges: ["203.0.113.0/24"] };
    expect(change(planOf([open]), planOf([guarded])).grow).toEqual([
      "add entry KUBE-LOAD-BALANCER-SOURCE-CIDR 198.51.100.7,tcp:80,203.0.113.0/24",
      "add entry KUBE-LOAD-BALANCER-FW 198.51.100.7,tcp:80",
    ]);
    expect(change(planOf([guarded]), planOf([open])).shrink).toEqual([
      "delete entry KUBE-LOAD-BALANCER-FW 198.51.100.7,tcp:80",
      "delete entry KUBE-LOAD-BALANCER-SOURCE-CIDR 198.51.100.7,tcp:80,203.0.113.0/24",
    ]);
  });

  it("20/25 a server inside excludeCIDRs is not deleted, although its address goes", () => {
    const excluding = { excludeCIDRs: ["172.30.0.0/24", "fd00::/8"] };
    expect(change(planOf([web(one)], excluding), planOf([], excluding)).shrink).not.toContain(
      "delete server 172.30.0.10:80/TCP",
    );
    expect(change(planOf([web(one)], excluding), planOf([], excluding)).shrink).toContain(
      "delete address 172.30.0.10",
    );
  });
});

describe("real servers that leave", () => {
  it("20/19 a TCP endpoint gets weight 0 after its successor was added, and drains", () => {
    const { grow, draining } = change(planOf([web(one)]), planOf([web(two)]));
    expect(grow).toEqual([
      "add destination 172.30.0.10:80/TCP 10.180.1.2:8080 weight 1",
      "set destination 172.30.0.10:80/TCP 10.180.1.1:8080 weight 0",
    ]);
    expect([...draining.keys()]).toEqual(["172.30.0.10:80/TCP/10.180.1.1:8080"]);
  });

  it.each(["udp", "sctp"] as const)("20/21 one of %s is deleted immediately", (protocol) => {
    const port = (...endpoints: ServicePort["endpoints"][number][]) =>
      servicePort("shop/web", { protocol, endpoints });
    const { grow, draining } = change(planOf([port(one, two)]), planOf([port(one)]));
    expect(grow).toEqual([`delete destination 172.30.0.10:80/${protocol.toUpperCase()} 10.180.1.2:8080`]);
    expect(draining.size).toBe(0);
  });

  it("20/22 one that comes back while it drains gets weight 1 and keeps its connections", () => {
    const { draining } = change(planOf([web(one, two)]), planOf([web(one)]));
    const back = change(planOf([web(one)]), planOf([web(one, two)]), draining);
    expect(back.grow).toEqual(["set destination 172.30.0.10:80/TCP 10.180.1.2:8080 weight 1"]);
    expect(back.draining.size).toBe(0);
  });

  it("20/20 one is deleted when it has no connections left, active or inactive, and not before", () => {
    const { draining } = change(planOf([web(one, two)]), planOf([web(one)]));
    const seen = (active: number, inactive: number) =>
      new Map([
        [
          "172.30.0.10:80/TCP",
          new Map([["10.180.1.2:8080", { address: "10.180.1.2", port: 8080, weight: 0, active, inactive }]]),
        ],
      ]);
    for (const [active, inactive] of [
      [1, 0],
      [0, 1],
    ] as const) {
      const still = settle(draining, seen(active, inactive));
      expect(still.ended.size).toBe(0);
      expect([...still.draining.keys()]).toEqual([...draining.keys()]);
    }
    const done = settle(draining, seen(0, 0));
    expect([...done.ended.keys()]).toEqual(["172.30.0.10:80/TCP/10.180.1.2:8080"]);
    expect(done.draining.size).toBe(0);
  });

  it("20/23 one whose virtual server is gone is dropped", () => {
    const { draining } = change(planOf([web(one, two)]), planOf([web(one)]));
    for (const seen of [new Map(), new Map([["172.30.0.10:80/TCP", new Map()]])])
      expect(settle(draining, seen)).toEqual({ draining: none, ended: none });
    expect(change(planOf([web(one)]), planOf([]), draining).draining.size).toBe(0);
  });
});

describe("from a host to a Plan", () => {
  it("20/9 20/26 an untouched host gets the link and all sets before anything else", () => {
    const want = planOf([web(one)]);
    const { patch } = adopt(freshState("ipv4"), want);
    const grow = texts(patch.grow);
    expect(grow[0]).toBe("add link");
    expect(grow.slice(1, 18).every((line) => line.startsWith("create set KUBE-"))).toBe(true);
    expect(grow.slice(18)).toEqual(change(planOf([]), want).grow);
    expect(patch.shrink).toEqual([]);
  });

  it("20/9 20/42 a host that is right is left alone, whatever kind its link is of", () => {
    const want = planOf([web(one, two)]);
    for (const link of ["dummy", "other"] as const) {
      const { patch, draining } = adopt({ ...heldBy(want), link }, want);
      expect([patch.grow, patch.shrink, draining.size]).toEqual([[], [], 0]);
    }
  });

  it("20/43 weight 0: a wanted server gets 1, another continues to drain", () => {
    const held = heldBy(planOf([web(one, two)]));
    const server = held.servers.get("172.30.0.10:80/TCP")!;
    const resting = new Map([...server.destinations].map(([key, each]) => [key, { ...each, weight: 0 }]));
    const state = {
      ...held,
      servers: new Map([["172.30.0.10:80/TCP", { ...server, destinations: resting }]]),
    };
    const { patch, draining } = adopt(state, planOf([web(one)]));
    expect(texts(patch.grow)).toEqual(["set destination 172.30.0.10:80/TCP 10.180.1.1:8080 weight 1"]);
    expect([...draining.keys()]).toEqual(["172.30.0.10:80/TCP/10.180.1.2:8080"]);
    expect(texts(adopt(held, planOf([web(one)])).patch.grow)).toEqual([
      "set destination 172.30.0.10:80/TCP 10.180.1.2:8080 weight 0",
    ]);
  });

  it("20/25 servers of other programs are deleted, unless their network is excluded", () => {
    const foreign = (address: string): [string, HeldServer] => [
      `${address}:99/TCP`,
      {
        address,
        port: 99,
        protocol: "tcp",
        scheduler: "wlc",
        flags: 0,
        timeoutSeconds: 0,
        destinations: new Map(),
      },
    ];
    const want = planOf([], { excludeCIDRs: ["10.99.0.0/16"] });
    const state = { ...heldBy(want), servers: new Map([foreign("10.99.0.1"), foreign("10.98.0.1")]) };
    expect(texts(adopt(state, want).patch.shrink)).toEqual(["delete server 10.98.0.1:99/TCP"]);
  });

  it("20/13 20/15 a server that differs is set, and keeps its destinations", () => {
    const held = heldBy(planOf([web(one)], { scheduler: "lc" }));
    expect(texts(adopt(held, planOf([web(one)])).patch.grow)).toEqual(["set server 172.30.0.10:80/TCP"]);
  });

  it("20/26 a set of another type, family or size is recreated with its entries", () => {
    const want = planOf([web(one)]);
    const held = heldBy(want);
    const name = "KUBE-CLUSTER-IP";
    for (const wrong of [{ type: "hash:ip" }, { family: "ipv6" as const }, { maxElements: 10 }]) {
      const sets = new Map(held.sets).set(name, { ...held.sets.get(name)!, ...wrong });
      expect(texts(adopt({ ...held, sets }, want).patch.grow)).toEqual([
        `destroy set ${name}`,
        `create set ${name}`,
        `add entry ${name} 172.30.0.10,tcp:80`,
      ]);
    }
  });
});
