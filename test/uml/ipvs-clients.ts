// Who may reach a Service in ipvs mode, where, and which client address its endpoints see.
import { expect, it } from "vitest";
import type { Family } from "../../src/model/address.ts";
import { httpGet } from "../kernel/http.ts";
import { serveTcp } from "../kernel/servers.ts";
import { eventually } from "../kernel/site.ts";
import { inFamily, outsideAddresses, places } from "../places.ts";
import { at, type Lab, serverAt, shop } from "./ipvs-lab.ts";

const { L1, L2, R1, host, X } = places;
const outsideOther = outsideAddresses[1]!;

export function testClients(lab: Lab, family: Family): void {
  const here = (address: string) => inFamily(address, family);
  const weightsOf = (...list: readonly [string, number][]) =>
    Object.fromEntries(list.map(([address, weight]) => [at(address, family), weight]));

  it("20/34 lets a pod reach itself through its Service, masqueraded", async () => {
    const vip = "172.30.0.16";
    const server = serverAt(vip, family);
    lab.show(...shop("web", { clusterIP: vip }, [L1]));
    await lab.become(server, weightsOf([L1, 1]));
    // The first Service brings the rules, which are written after its server.
    await eventually(
      async () => (await lab.seen(here(L1), here(vip), 80)).join() === `${at(L1, family)} masquerade`,
      "rules",
    );
  });

  it("20/35 shows endpoints the right client addresses", async () => {
    const vip = "172.30.0.17";
    const external = {
      type: "LoadBalancer",
      clusterIP: vip,
      nodePort: 30017,
      externalIPs: ["192.168.99.17"],
    };
    const status = { loadBalancer: { ingress: [{ ip: "198.51.100.17", ipMode: "VIP" }] } };
    const masqueraded = [`${at(L1, family)} masquerade`];
    const kept = [`${at(L1, family)} keep`];
    lab.show(...shop("web", external, [L1], status));
    await lab.become(serverAt("198.51.100.17", family), weightsOf([L1, 1]));
    await eventually(
      async () => (await lab.seen(here(X), here(host), 30017)).join() === masqueraded.join(),
      "rules",
    );
    expect(await lab.seen(here(L2), here(vip), 80)).toEqual(kept);
    for (const from of [X, host]) expect(await lab.seen(here(from), here(vip), 80)).toEqual(masqueraded);
    for (const to of ["192.168.99.17", "198.51.100.17"])
      expect([to, await lab.seen(here(X), here(to), 80)]).toEqual([to, masqueraded]);
    lab.show(
      ...shop(
        "web",
        { ...external, externalTrafficPolicy: "Local", healthCheckNodePort: 31017 },
        [L1],
        status,
      ),
    );
    await eventually(
      async () => (await lab.seen(here(X), here(host), 30017)).join() === kept.join(),
      "policy Local",
    );
    for (const to of ["192.168.99.17", "198.51.100.17"])
      expect([to, await lab.seen(here(X), here(to), 80)]).toEqual([to, kept]);
    expect(await lab.seen(here(L2), here("198.51.100.17"), 80)).toEqual(kept);
  });

  it("20/28 and 20/36 drops clients outside the source ranges, and never others", async () => {
    const vip = "172.30.0.18";
    const balanced = (loadBalancerSourceRanges: readonly string[]) =>
      shop("web", { type: "LoadBalancer", clusterIP: vip, nodePort: 30018, loadBalancerSourceRanges }, [L1], {
        loadBalancer: { ingress: [{ ip: "198.51.100.18", ipMode: "VIP" }] },
      });
    const to = here("198.51.100.18");
    lab.show(...balanced(["203.0.113.2/32"]));
    await lab.become(serverAt("198.51.100.18", family), weightsOf([L1, 1]));
    await eventually(async () => (await lab.seen(here(outsideOther), to, 80)).join() === "drop", "ranges");
    for (const from of [L2, host])
      expect([from, await lab.seen(here(from), to, 80)]).toEqual([from, ["drop"]]);
    const before = rangeLines(lab);
    for (const extra of [1, 2, 3]) {
      lab.show(...balanced(["203.0.113.2/32"]), ...shop("other", { clusterIP: `172.30.0.2${extra}` }, [R1]));
      expect(await lab.seen(here(X), to, 80, "tcp", 8)).toEqual([`${at(L1, family)} masquerade`]);
    }
    expect(rangeLines(lab)).toEqual(before);
    lab.show(...balanced(["203.0.113.2/32", "192.168.0.0/24"]));
    await eventually(
      async () => (await lab.seen(here(host), to, 80)).join() !== "drop",
      "the node is in the ranges",
    );
    expect(await lab.seen(here(host), to, 80)).toEqual([`${at(L1, family)} masquerade`]);
  });

  it("20/37 replaces the node's own programs at a Service address, but not health checks", async () => {
    const vip = "172.30.0.19";
    const server = serverAt(vip, family);
    const own = family === "ipv4" ? { address: "0.0.0.0", port: 9090 } : { address: "::", port: 9091 };
    serveTcp(lab.world.poller, lab.world.node, own);
    const local = { type: "LoadBalancer", clusterIP: vip, nodePort: 30019, externalTrafficPolicy: "Local" };
    lab.show(...shop("web", { ...local, healthCheckNodePort: 31019 }, [L1]));
    await lab.become(server, weightsOf([L1, 1]));
    const healthCheck = (address: string) => httpGet(lab.world.at.X, `http://${at(address, family, 31019)}/`);
    await eventually(async () => (await healthCheck(host))?.status === 200, "health checks");
    expect((await healthCheck(vip))?.status).toBe(200);
    expect(await lab.seen(here(X), here(vip), own.port)).toEqual(["reject"]);
    expect((await lab.reach(here(X), here(host), own.port, 1))[0]).toContain(`:${own.port}`);
    expect(await lab.seen(here(X), here(vip), 0, "icmp")).toEqual(["reject"]);
  });

  it("20/38 opens node ports on every address but loopback, also on one that comes later", async () => {
    const vip = "172.30.0.20";
    lab.show(...shop("web", { type: "NodePort", clusterIP: vip, nodePort: 30020 }, [L1]));
    await lab.become(serverAt(host, family, 30020), weightsOf([L1, 1]));
    await eventually(
      async () => (await lab.seen(here(X), here(host), 30020)).join().includes("masquerade"),
      "rules",
    );
    expect(await lab.seen(here(X), here("192.168.1.2"), 30020)).toEqual([`${at(L1, family)} masquerade`]);
    const loopback = family === "ipv4" ? "127.0.0.1" : "::1";
    expect(await lab.reach(loopback, loopback, 30020, 1)).toEqual(["ECONNREFUSED"]);
    const late = family === "ipv4" ? "192.168.0.77" : "2001:db8::77";
    lab.world.node.run(
      "ip",
      "address",
      "add",
      family === "ipv4" ? `${late}/24` : `${late}/64`,
      "dev",
      "eth0",
      ...(family === "ipv4" ? [] : ["nodad"]),
    );
    try {
      await lab.become(serverAt(late, family, 30020), weightsOf([L1, 1]));
    } finally {
      lab.world.node.run(
        "ip",
        "address",
        "delete",
        family === "ipv4" ? `${late}/24` : `${late}/64`,
        "dev",
        "eth0",
      );
    }
    await lab.become(serverAt(late, family, 30020), null);
  });
}

/** Entries of source ranges, in the order in which the kernel has them. */
function rangeLines(lab: Lab): string[] {
  return lab.world.node
    .run("ipset", "save")
    .split("\n")
    .filter((line) => line.startsWith("add") && line.includes("SOURCE-CI"));
}
