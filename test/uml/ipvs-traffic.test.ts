// What our daemon in ipvs mode makes of packets, and what the kernel holds meanwhile, in both families.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { families } from "../../src/model/address.ts";
import { readFlows } from "../kernel/flows.ts";
import { httpGet } from "../kernel/http.ts";
import { serveTcp } from "../kernel/servers.ts";
import { eventually } from "../kernel/site.ts";
import { inFamily, places } from "../places.ts";
import { at, openLab, serverAt, shop, slow } from "./ipvs-lab.ts";

const lab = openLab();
const { L1, L2, R1, R2, host, X } = places;
const outsideOther = "203.0.113.130";

beforeAll(async () => {
  lab.show();
  await lab.start({ ipvs: { syncPeriod: "5s" } });
}, slow);
afterAll(() => lab.stop(), slow);

describe.each(families)("%s", (family) => {
  const here = (address: string) => inFamily(address, family);
  const weightsOf = (...list: readonly [string, number][]) =>
    Object.fromEntries(list.map(([address, weight]) => [at(address, family), weight]));

  it("20/17 refuses TCP and UDP where there is no endpoint, whoever asks", async () => {
    const vip = "172.30.0.11";
    const server = serverAt(vip, family);
    lab.show(...shop("web", { clusterIP: vip }, []), ...shop("dns", { clusterIP: vip, protocol: "UDP" }, []));
    await lab.become(server, {});
    await lab.become({ ...server, protocol: "udp" }, {});
    for (const from of [host, L2, X])
      for (const protocol of ["tcp", "udp"] as const)
        expect([from, protocol, await lab.seen(here(from), here(vip), 80, protocol)]).toEqual([
          from,
          protocol,
          ["reject"],
        ]);
  });

  it("20/18 gives endpoints weight 1 and takes them in turn", async () => {
    const vip = "172.30.0.12";
    const server = serverAt(vip, family);
    lab.show(...shop("web", { clusterIP: vip }, [L1, R1]));
    await lab.become(server, weightsOf([L1, 1], [R1, 1]));
    const reached = await lab.reach(here(L2), here(vip), 80, 6);
    expect([reached.slice(0, 2), reached.slice(2, 4), reached.slice(4, 6)].map((two) => two.sort())).toEqual(
      Array(3).fill([at(L1, family), at(R1, family)].sort()),
    );
  });

  it("20/19 and 20/22 lets a removed endpoint keep its connection at weight 0, and weight 1 brings it back", async () => {
    const vip = "172.30.0.13";
    const server = serverAt(vip, family);
    lab.show(...shop("web", { clusterIP: vip }, [L1]));
    await lab.become(server, weightsOf([L1, 1]));
    const session = lab.open(here(L2), here(vip), 80);
    expect(await session.talk()).toBe(at(L1, family));
    lab.show(...shop("web", { clusterIP: vip }, [R1]));
    await lab.become(server, weightsOf([L1, 0], [R1, 1]));
    expect(new Set(await lab.reach(here(L2), here(vip), 80, 4))).toEqual(new Set([at(R1, family)]));
    expect(await session.talk()).toBe(at(L1, family));
    lab.show(...shop("web", { clusterIP: vip }, [L1, R1]));
    await lab.become(server, weightsOf([L1, 1], [R1, 1]));
    expect(await session.talk()).toBe(at(L1, family));
    expect(new Set(await lab.reach(here(L2), here(vip), 80, 4)).size).toBe(2);
    session.close();
  });

  it("20/13 sets and clears affinity without dropping a connection", async () => {
    const vip = "172.30.0.14";
    const server = serverAt(vip, family);
    lab.show(...shop("web", { clusterIP: vip }, [L1]));
    await lab.become(server, weightsOf([L1, 1]));
    const session = lab.open(here(L2), here(vip), 80);
    await session.talk();
    const affinity = {
      sessionAffinity: "ClientIP",
      sessionAffinityConfig: { clientIP: { timeoutSeconds: 77 } },
    };
    lab.show(...shop("web", { clusterIP: vip, ...affinity }, [L1]));
    await eventually(
      () => saved().some((line) => line.startsWith("-A ") && line.includes("-p 77")),
      "affinity",
    );
    expect(await session.talk()).toBe(at(L1, family));
    lab.show(...shop("web", { clusterIP: vip }, [L1]));
    await eventually(() => !saved().some((line) => line.includes("-p 77")), "no affinity");
    expect(await session.talk()).toBe(at(L1, family));
    session.close();
  });

  it("20/21 and 20/41 moves a UDP flow to another endpoint within a second, and keeps those to serving ones", async () => {
    const vip = "172.30.0.15";
    const dns = { clusterIP: vip, protocol: "UDP", port: 53 };
    const udp = serverAt(vip, family, 53, "udp");
    lab.show(...shop("dns", dns, [L1]));
    await lab.become(udp, weightsOf([L1, 1]));
    const moved = lab.open(here(L2), here(vip), 53, "udp");
    expect(await moved.talk()).toBe(at(L1, family));
    lab.show(...shop("dns", dns, [L1, R1]));
    await lab.become(udp, weightsOf([L1, 1], [R1, 1]));
    const kept = lab.open(here(L2), here(vip), 53, "udp");
    const stays = await kept.talk();
    const other = stays === at(L1, family) ? R1 : L1;
    expect(await moved.talk()).toBe(at(L1, family));
    lab.show(...shop("dns", dns, [other === L1 ? R1 : L1]));
    await lab.become(udp, weightsOf([other === L1 ? R1 : L1, 1]));
    expect(await kept.talk()).toBe(stays);
    await eventually(
      () =>
        !readFlows(lab.world.node).some(
          ({ to, answerFrom }) => to.port === 53 && answerFrom.address === here(other),
        ),
      "no flow to the endpoint that is gone",
    );
    await eventually(async () => (await moved.talk()) === stays, "the flow has moved", 5000);
    moved.close();
    kept.close();
  });

  it("20/34 lets a pod reach itself through its Service, masqueraded", async () => {
    const vip = "172.30.0.16";
    const server = serverAt(vip, family);
    lab.show(...shop("web", { clusterIP: vip }, [L1]));
    await lab.become(server, weightsOf([L1, 1]));
    expect(await lab.seen(here(L1), here(vip), 80)).toEqual([`${at(L1, family)} masquerade`]);
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

  it("20/28 and 20/36 keeps who is not in the source ranges out, and never those who are", async () => {
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
    const before = setLines();
    for (const extra of [1, 2, 3]) {
      lab.show(...balanced(["203.0.113.2/32"]), ...shop("other", { clusterIP: `172.30.0.2${extra}` }, [R1]));
      expect(await lab.seen(here(X), to, 80, "tcp", 8)).toEqual([`${at(L1, family)} masquerade`]);
    }
    expect(setLines()).toEqual(before);
    lab.show(...balanced(["203.0.113.2/32", "192.168.0.0/24"]));
    await eventually(
      async () => (await lab.seen(here(host), to, 80)).join() !== "drop",
      "the node is in the ranges",
    );
    expect(await lab.seen(here(host), to, 80)).toEqual([`${at(L1, family)} masquerade`]);
  });

  it("20/37 hides the node's own programs behind a Service address, but not health checks", async () => {
    const vip = "172.30.0.19";
    const server = serverAt(vip, family);
    const own = family === "ipv4" ? { address: "0.0.0.0", port: 9090 } : { address: "::", port: 9091 };
    serveTcp(lab.world.poller, lab.world.node, own);
    const local = { type: "LoadBalancer", clusterIP: vip, nodePort: 30019, externalTrafficPolicy: "Local" };
    lab.show(...shop("web", { ...local, healthCheckNodePort: 31019 }, [L1]));
    await lab.become(server, weightsOf([L1, 1]));
    const ask = (address: string) => httpGet(lab.world.at.X, `http://${at(address, family, 31019)}/`);
    await eventually(async () => (await ask(host))?.status === 200, "health checks");
    expect((await ask(vip))?.status).toBe(200);
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
});

it("20/45 serves both families apart: one goes, the other stays", async () => {
  const vip = "172.30.0.30";
  lab.show(...shop("web", { clusterIP: vip }, [L1, R2]));
  const both = { [at(L1, "ipv4")]: 1, [at(R2, "ipv4")]: 1 };
  const six = { [at(L1, "ipv6")]: 1, [at(R2, "ipv6")]: 1 };
  await lab.become(serverAt(vip, "ipv4"), both);
  await lab.become(serverAt(vip, "ipv6"), six);
  const session = lab.open(L2, vip, 80);
  const reached = await session.talk();
  lab.show(...shop("web", { clusterIP: vip, clusterIPs: [vip], ipFamilies: ["IPv4"] }, [L1, R2]));
  await lab.become(serverAt(vip, "ipv6"), null);
  expect(await session.talk()).toBe(reached);
  expect(await lab.weights(serverAt(vip, "ipv4"))).toEqual(both);
  lab.show(
    ...shop(
      "web",
      { clusterIP: inFamily(vip, "ipv6"), clusterIPs: [inFamily(vip, "ipv6")], ipFamilies: ["IPv6"] },
      [L1, R2],
    ),
  );
  await lab.become(serverAt(vip, "ipv6"), six);
  await lab.become(serverAt(vip, "ipv4"), null);
  session.close();
});

function saved(): string[] {
  return lab.world.node.run("ipvsadm", "-Sn").split("\n");
}

/** Entries of source ranges, in the order in which the kernel has them. */
function setLines(): string[] {
  return lab.world.node
    .run("ipset", "save")
    .split("\n")
    .filter((line) => line.startsWith("add") && line.includes("SOURCE-CI"));
}
