// The host of ipvs mode against a kernel that has IPVS: what it writes, reads, and what it is refused.
import { describe, expect, it } from "vitest";
import { serverKey } from "../../src/plan/ipvs/names.ts";
import type { Operation, SetType } from "../../src/plan/ipvs/types.ts";
import { destination, ipvsNode, server, web, web6 } from "./ipvs-node.ts";

const { node, hosts } = ipvsNode();

describe("virtual and real servers", () => {
  it("20/46 are to ipvsadm what they are to us", async () => {
    const udp = { ...web, port: 53, protocol: "udp" } as const;
    const sctp = { ...web, port: 99, protocol: "sctp" } as const;
    const { failures } = await hosts.ipv4.apply([
      server(web),
      server(udp, { flags: 0x1, timeoutSeconds: 10_800 }),
      server(sctp, { scheduler: "mh", flags: 0x10 }),
      destination(web, "10.0.0.1"),
      destination(web, "10.0.0.2", 0),
      destination(udp, "10.0.0.3", 7),
      server(web6, { scheduler: "sh" }),
      destination(web6, "fd00::1"),
    ]);
    expect(failures).toEqual([]);
    expect(savedServers()).toEqual(
      [
        "-A -t 172.30.0.1:80 -s rr",
        "-a -t 172.30.0.1:80 -r 10.0.0.1:8080 -m -w 1",
        "-a -t 172.30.0.1:80 -r 10.0.0.2:8080 -m -w 0",
        "-A -u 172.30.0.1:53 -s rr -p 10800",
        "-a -u 172.30.0.1:53 -r 10.0.0.3:8080 -m -w 7",
        "-A --sctp-service 172.30.0.1:99 -s mh -b mh-port",
        "-A -t [fd00:30::1]:80 -s sh",
        "-a -t [fd00:30::1]:80 -r [fd00::1]:8080 -m -w 1",
      ].sort(),
    );
    const { servers } = await hosts.ipv4.read();
    expect([...servers.keys()].sort()).toEqual([web, udp, sctp].map(serverKey).sort());
    expect(servers.get(serverKey(udp))).toMatchObject({ scheduler: "rr", flags: 1, timeoutSeconds: 10_800 });
    expect(servers.get(serverKey(sctp))).toMatchObject({ scheduler: "mh", flags: 0x10, timeoutSeconds: 0 });
    const held = { active: 0, inactive: 0, port: 8080 };
    expect(servers.get(serverKey(web))!.destinations).toEqual(
      new Map([
        ["10.0.0.1:8080", { address: "10.0.0.1", weight: 1, ...held }],
        ["10.0.0.2:8080", { address: "10.0.0.2", weight: 0, ...held }],
      ]),
    );
    const six = (await hosts.ipv6.read()).servers;
    expect([...six.get(serverKey(web6))!.destinations.keys()]).toEqual(["[fd00::1]:8080"]);
    expect([...six.keys()]).toEqual([serverKey(web6)]);
  });

  it("20/46 are deleted, set again when they exist, and named when the kernel refuses them", async () => {
    const away = { ...web, port: 81 };
    const applied = await hosts.ipv4.apply([
      server(web),
      server(web, { scheduler: "wrr", flags: 1, timeoutSeconds: 60 }),
      destination(web, "10.0.0.1"),
      destination(web, "10.0.0.1", 3),
      destination(away, "10.0.0.1"),
      server(away, { scheduler: "nope" }),
      destination(web, "fd00::1"),
      destination(web, "10.0.0.2", -1),
      { kind: "set server", server: { ...away, scheduler: "rr", flags: 0, timeoutSeconds: 0 } },
      { kind: "set destination", server: web, destination: { address: "10.0.0.9", port: 8080, weight: 1 } },
      { kind: "delete server", server: away },
      { kind: "delete destination", server: web, destination: { address: "10.0.0.9", port: 8080 } },
      destination(web, "10.0.0.3"),
      { kind: "delete destination", server: web, destination: { address: "10.0.0.3", port: 8080 } },
    ]);
    expect(applied.failures.map(({ operation, errno }) => [operation, errno])).toEqual([
      [4, "ESRCH"],
      [5, "ENOENT"],
      [6, "EINVAL"],
      [7, "ERANGE"],
      [8, "ESRCH"],
      [9, "ENOENT"],
    ]);
    expect(applied.failures[1]!.reason).toBe("this kernel has no scheduler nope (ENOENT)");
    expect(savedServers()).toEqual([
      "-A -t 172.30.0.1:80 -s wrr -p 60",
      "-a -t 172.30.0.1:80 -r 10.0.0.1:8080 -m -w 3",
    ]);
    const { failures } = await hosts.ipv4.apply([server(web, { scheduler: "nope" })]);
    expect(failures.map(({ reason }) => reason)).toEqual(["this kernel has no scheduler nope (ENOENT)"]);
  });

  it("20/46 are many: dumps in several parts, changes in few writes", async () => {
    const ports = Array.from({ length: 1500 }, (_, i) => i + 1);
    const { failures, messages } = await hosts.ipv4.apply([
      ...ports.map((port) => server({ ...web, port })),
      ...ports.map((port) => destination({ ...web, port: 7 }, "10.0.0.1", 1, port)),
      destination({ ...web, port: 3000 }, "10.0.0.1"),
      destination({ ...web, port: 8 }, "10.0.0.1"),
    ]);
    expect(failures.map(({ operation, errno }) => [operation, errno])).toEqual([[3000, "ESRCH"]]);
    expect(messages).toBe(3002);
    const { servers } = await hosts.ipv4.read();
    expect(servers.size).toBe(1500);
    expect(servers.get("172.30.0.1:7/TCP")!.destinations.size).toBe(1500);
    const some = await hosts.ipv4.readDestinations([
      { ...web, port: 8 },
      { ...web, port: 9 },
      { ...web, port: 3000 },
    ]);
    expect([...some].map(([key, { size }]) => [key, size])).toEqual([
      ["172.30.0.1:8/TCP", 1],
      ["172.30.0.1:9/TCP", 0],
    ]);
  });

  it("20/25 that answer to marks are left alone and not seen", async () => {
    node.run("ipvsadm", "-A", "-f", "7", "-s", "rr");
    expect((await hosts.ipv4.read()).servers.size).toBe(0);
    expect(savedServers()).toEqual(["-A -f 7 -s rr"]);
  });

  it("20/4 have timeouts of which 0 leaves one as it is", async () => {
    node.run("ipvsadm", "--set", "900", "120", "300");
    await hosts.ipv4.setTimeouts({ tcp: 100, tcpFin: 0, udp: 7 });
    expect(node.run("ipvsadm", "-L", "--timeout")).toContain("100 120 7");
    await expect(hosts.ipv4.setTimeouts({ tcp: 2 ** 31 - 1, tcpFin: 0, udp: 0 })).rejects.toMatchObject({
      kind: "refused",
      errno: "EINVAL",
    });
  });
});

describe("the link", () => {
  it("20/9 and 20/10 is a dummy that is down and carries whole addresses of both families", async () => {
    const { failures } = await hosts.ipv4.apply([
      { kind: "add address", address: "172.30.0.9" },
      { kind: "add link" },
      { kind: "add link" },
      { kind: "add address", address: "172.30.0.1" },
      { kind: "add address", address: "172.30.0.2" },
      { kind: "add address", address: "172.30.0.1" },
      { kind: "delete address", address: "172.30.0.2" },
      { kind: "delete address", address: "172.30.0.3" },
    ]);
    expect(failures).toEqual([
      { operation: 0, errno: "ENODEV", reason: "there is no link kube-ipvs0 (ENODEV)" },
    ]);
    expect(
      (
        await hosts.ipv6.apply([
          { kind: "add address", address: "fd00:30::1" },
          { kind: "add address", address: "fd00:30::1" },
          { kind: "delete address", address: "fd00:30::3" },
        ])
      ).failures,
    ).toEqual([]);
    const shown = node.run("ip", "-o", "-d", "address", "show", "dev", "kube-ipvs0");
    expect(shown).toMatch(/inet 172.30.0.1\/32 scope global kube-ipvs0/);
    expect(shown).toMatch(/inet6 fd00:30::1\/128 scope global/);
    const link = node.run("ip", "-d", "link", "show", "dev", "kube-ipvs0");
    expect(link).toMatch(/<BROADCAST,NOARP> mtu 1500 .* state DOWN/);
    expect(link).toContain("dummy");
    expect(await hosts.ipv4.read()).toMatchObject({ link: "dummy", addresses: new Set(["172.30.0.1"]) });
    expect((await hosts.ipv6.read()).addresses).toEqual(new Set(["fd00:30::1"]));
    expect((await hosts.ipv4.apply([{ kind: "delete link" }, { kind: "delete link" }])).failures).toEqual([]);
    expect((await hosts.ipv4.read()).link).toBe("absent");
  });

  it("20/9 can be added and deleted by the hosts of both families in parallel", async () => {
    for (const kind of ["add link", "delete link", "add link", "delete link"] as const) {
      const both = await Promise.all(Object.values(hosts).map((host) => host.apply([{ kind }])));
      expect(both.flatMap(({ failures }) => failures)).toEqual([]);
    }
  });

  it("20/9 is left alone when it is of another kind", async () => {
    node.ip("link add kube-ipvs0 type bridge");
    const { failures } = await hosts.ipv4.apply([
      { kind: "add link" },
      { kind: "add address", address: "172.30.0.1" },
      { kind: "delete link" },
    ]);
    expect(failures.map(({ operation, reason }) => [operation, reason])).toEqual([
      [2, "it is a bridge link, not a dummy one (EOPNOTSUPP)"],
    ]);
    expect(await hosts.ipv4.read()).toMatchObject({ link: "other", addresses: new Set(["172.30.0.1"]) });
  });
});

describe("IP sets", () => {
  it("20/26 are made, filled, listed as given and taken out", async () => {
    const { failures } = await hosts.ipv4.apply([
      ...setTypes.map(
        ([name, type]): Operation => ({ kind: "create set", set: { name, type, family: "ipv4" } }),
      ),
      ...setTypes.map(([set, , entry]): Operation => ({ kind: "add entry", set, entry })),
      ...setTypes.map(([set, , entry]): Operation => ({ kind: "add entry", set, entry })),
    ]);
    expect(failures).toEqual([]);
    const { sets } = await hosts.ipv4.read();
    for (const [name, type, entry] of setTypes)
      expect(sets.get(name)).toMatchObject({ type, entries: new Set([entry]) });
    expect(node.run("ipset", "list", "-t", "KUBE-IP-PORT")).toMatch(
      /family inet hashsize 1024 maxelem 65536/,
    );
    expect(node.run("ipset", "list", "-t", "KUBE-PORT")).toContain("range 0-65535");
    const undone = await hosts.ipv4.apply([
      ...setTypes.map(([set, , entry]): Operation => ({ kind: "delete entry", set, entry })),
      ...setTypes.map(([set, , entry]): Operation => ({ kind: "delete entry", set, entry })),
      ...setTypes.map(([set]): Operation => ({ kind: "destroy set", set })),
      { kind: "destroy set", set: "KUBE-IP" },
    ]);
    expect(undone.failures).toEqual([]);
    expect((await hosts.ipv4.read()).sets.size).toBe(0);
  });

  it("20/47 hold 65,536 entries, and the next one fails alone", async () => {
    const entries = Array.from({ length: 65_600 }, (_, i) => `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`);
    const { failures } = await hosts.ipv4.apply([
      { kind: "create set", set: { name: "KUBE-IP", type: "hash:ip", family: "ipv4" } },
      ...entries.map((entry): Operation => ({ kind: "add entry", set: "KUBE-IP", entry })),
      { kind: "create set", set: { name: "KUBE-PORT", type: "bitmap:port", family: "ipv4" } },
    ]);
    // Which entry no longer fits depends on how the hash was resized.
    const { sets } = await hosts.ipv4.read();
    expect(sets.get("KUBE-IP")!.entries.size).toBe(entries.length - failures.length);
    expect(sets.get("KUBE-IP")!.entries.size).toBeGreaterThanOrEqual(65_536);
    expect(new Set(failures.map(({ reason }) => reason))).toEqual(
      new Set(["Hash is full, cannot add more elements"]),
    );
    expect(sets.has("KUBE-PORT")).toBe(true);
  });
});

const setTypes: readonly (readonly [string, SetType, string])[] = [
  ["KUBE-IP", "hash:ip", "10.0.0.1"],
  ["KUBE-IP-PORT", "hash:ip,port", "10.0.0.1,sctp:80"],
  ["KUBE-IP-PORT-IP", "hash:ip,port,ip", "10.0.0.1,tcp:80,10.0.0.1"],
  ["KUBE-IP-PORT-NET", "hash:ip,port,net", "10.0.0.1,udp:80,10.9.0.0/16"],
  ["KUBE-PORT", "bitmap:port", "30080"],
];

function savedServers(): string[] {
  return node.run("ipvsadm", "-Sn").trim().split("\n").sort();
}
