// Which endpoints packets reach in ipvs mode, and the results of connections when endpoints leave and return.
import { expect, it } from "vitest";
import type { Family } from "../../src/model/address.ts";
import { readFlows } from "../kernel/flows.ts";
import { eventually } from "../kernel/site.ts";
import { inFamily, places } from "../places.ts";
import { at, type Lab, serverAt, shop } from "./ipvs-lab.ts";

const { L1, L2, R1, host, X } = places;

export function testEndpoints(lab: Lab, family: Family): void {
  const here = (address: string) => inFamily(address, family);
  const weightsOf = (...list: readonly [string, number][]) =>
    Object.fromEntries(list.map(([address, weight]) => [at(address, family), weight]));

  it("20/17 refuses TCP and UDP where there is no endpoint, from every sender", async () => {
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

  it("20/19 and 20/22 lets an endpoint that ends keep its connection at weight 0, and weight 1 brings it back", async () => {
    const vip = "172.30.0.13";
    const server = serverAt(vip, family);
    const ends = {
      addresses: [L1],
      nodeName: "node-a",
      conditions: { ready: false, serving: true, terminating: true },
    };
    lab.show(...shop("web", { clusterIP: vip }, [L1]));
    await lab.become(server, weightsOf([L1, 1]));
    const session = lab.open(here(L2), here(vip), 80);
    expect(await session.talk()).toBe(at(L1, family));
    for (const endpoints of [[ends, R1], [R1]]) {
      lab.show(...shop("web", { clusterIP: vip }, endpoints));
      await lab.become(server, weightsOf([L1, 0], [R1, 1]));
      expect(new Set(await lab.reach(here(L2), here(vip), 80, 4))).toEqual(new Set([at(R1, family)]));
      expect(await session.talk()).toBe(at(L1, family));
    }
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
      () => servers(lab).some((line) => line.startsWith("-A ") && line.includes("-p 77")),
      "affinity",
    );
    expect(await session.talk()).toBe(at(L1, family));
    lab.show(...shop("web", { clusterIP: vip }, [L1]));
    await eventually(() => !servers(lab).some((line) => line.includes("-p 77")), "no affinity");
    expect(await session.talk()).toBe(at(L1, family));
    session.close();
  });

  it("20/21 and 20/41 moves a UDP flow to another endpoint without waiting for its time-out, and keeps those to serving ones", async () => {
    const vip = "172.30.0.15";
    const dns = { clusterIP: vip, protocol: "UDP", port: 53 };
    const udp = serverAt(vip, family, 53, "udp");
    lab.show(...shop("dns", dns, [L1]));
    await lab.become(udp, weightsOf([L1, 1]));
    const moved = lab.open(here(L2), here(vip), 53, "udp");
    // The address is written after its server, and is rejected until then.
    await eventually(async () => (await moved.talk()) === at(L1, family), "the endpoint answers");
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
    await eventually(async () => (await moved.talk()) === stays, "the flow has moved");
    moved.close();
    kept.close();
  });
}

function servers(lab: Lab): string[] {
  return lab.world.node.run("ipvsadm", "-Sn").split("\n");
}
