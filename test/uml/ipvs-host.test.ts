// The host of ipvs mode against a kernel that has IPVS: what it writes, reads, and what it is refused.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type IpvsHost, openIpvsHost } from "../../src/host/ipvs/host.ts";
import type { Family } from "../../src/model/address.ts";
import { serverKey } from "../../src/plan/ipvs/names.ts";
import type { Operation, ServerId, VirtualServer } from "../../src/plan/ipvs/types.ts";
import { createNamespace, type Namespace } from "../kernel/netns.ts";

let node: Namespace;
const hosts = {} as Record<Family, IpvsHost>;

beforeAll(async () => {
  node = createNamespace();
  node.ip("link set lo up");
  for (const family of ["ipv4", "ipv6"] as const)
    hosts[family] = await openIpvsHost({ family, netns: node.path });
});

afterAll(async () => {
  for (const host of Object.values(hosts)) await host.close();
  node.remove();
});

beforeEach(() => {
  node.run("ipvsadm", "-C");
  node.run("ipset", "destroy");
  if (node.run("ip", "-o", "link").includes("kube-ipvs0")) node.ip("link delete kube-ipvs0");
});

const web: ServerId = { address: "172.30.0.1", port: 80, protocol: "tcp" };
const web6: ServerId = { address: "fd00:30::1", port: 80, protocol: "tcp" };
const server = (id: ServerId, change: Partial<VirtualServer> = {}): Operation => ({
  kind: "add server",
  server: { ...id, scheduler: "rr", flags: 0, timeoutSeconds: 0, ...change },
});
const destination = (id: ServerId, address: string, weight = 1, port = 8080): Operation => ({
  kind: "add destination",
  server: id,
  destination: { address, port, weight },
});

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
});

function savedServers(): string[] {
  return node.run("ipvsadm", "-Sn").trim().split("\n").sort();
}
