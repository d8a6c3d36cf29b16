// Userspace mode where something runs out: descriptors, ports towards an endpoint; and how it ends with connections open.
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { places } from "../places.ts";
import { readScenario } from "../scenarios.ts";
import { daemonAmongPods } from "./among-pods.ts";
import { openConversation } from "./conversation.ts";
import { resultOf, senderAt } from "./probe.ts";
import { eventually, type Order } from "./site.ts";

const objects = ["node-port", "cluster-ip", "udp-flows"].flatMap((name) => readScenario(name).objects);
const flooded = { address: "192.168.0.2", port: 30_025 };
const dns = { address: "192.168.0.2", port: 30_085 };
const other = { address: "172.30.0.1", port: 80 };

describe("userspace mode under load", () => {
  const node = daemonAmongPods(objects);
  const started = (order: Order = {}) => node.started({ mode: "userspace", ...order.config }, order);

  const from = { kind: "outside" as const, address: places.X };
  const result = (to: typeof other) => resultOf(node.world, { from, to: { ...to, protocol: "tcp" } });

  /** Connections from outside that stay open; those that an endpoint answers. */
  function crowd(size: number) {
    const all = Array.from({ length: size }, () =>
      openConversation(senderAt(node.world, places.X), "tcp", flooded),
    );
    const answered = new Set<number>();
    return {
      /** How many have been answered by now; a busy machine answers late. */
      answered: async () => {
        const replies = await Promise.all(all.map((each) => each.talk()));
        for (const [i, reply] of replies.entries()) if (reply.endsWith(":8080")) answered.add(i);
        return answered.size;
      },
      leave: () => {
        for (const each of all) each.close();
      },
    };
  }

  it("a flood on one Service uses its share of the descriptors, and everything else continues", async () => {
    // Half of 400 is the reserve; each family has 100, each relay 50 of them: 25 connections.
    const daemon = await started({ by: ["prlimit", "--nofile=400:400"] });
    const { answered, leave } = crowd(150);
    await expect.poll(answered).toBe(25);
    expect(await answered()).toBe(25);
    expect(await result(other)).toMatchObject({ kind: "answered" });
    node.site.api.remove("Service", "cluster-ip", "web");
    await eventually(() => !node.site.netns.run("iptables-save").includes("172.30.0.1/"), "the next Sync");
    leave();
    await eventually(async () => (await result(flooded)).kind === "answered", "room again");
    expect(daemon.running()).toBe(true);
  });

  it("a reserved port stays reserved when the kernel aborts its socket, and the daemon continues", async () => {
    const daemon = await started();
    /** One in each family. */
    const socketsOf = (options: string) =>
      node.site.netns.run("ss", options, `sport = :${dns.port}`).trim().split("\n").length;
    for (let i = 0; i < 3; i++) {
      expect(socketsOf("-HKuna")).toBe(2);
      await sleep(100);
    }
    expect(socketsOf("-Huna")).toBe(2);
    const datagram = resultOf(node.world, { from, to: { ...dns, protocol: "udp" } });
    expect(await datagram).toMatchObject({ kind: "answered" });
    expect(daemon.running()).toBe(true);
  });

  it("clients are sent away, not kept waiting, when there are no more ports towards the endpoints", async () => {
    node.world.node.sysctl({ "net.ipv4.ip_local_port_range": "40000 40019", "net.ipv4.tcp_tw_reuse": 1 });
    const daemon = await started();
    const { answered, leave } = crowd(100);
    await expect.poll(answered).toBeGreaterThan(10);
    expect(await answered()).toBeLessThanOrEqual(40);
    leave();
    await eventually(async () => (await result(flooded)).kind === "answered", "ports again", 70_000);
    expect(daemon.running()).toBe(true);
  });

  it("an orderly end does not wait for connections, not even those of a Service that is gone", async () => {
    const daemon = await started({ program: "turnout run" });
    const open = openConversation(senderAt(node.world, places.X), "tcp", flooded);
    expect(await open.talk()).toMatch(/:8080$/);
    node.site.api.remove("Service", "node-port", "web");
    await eventually(() => !node.site.netns.run("iptables-save").includes("30025"), "the rules to go");
    expect(await open.talk()).toMatch(/:8080$/);
    const before = Date.now();
    daemon.kill("SIGTERM");
    expect(await daemon.ended()).toBe(0);
    expect(Date.now() - before).toBeLessThan(30_000);
    open.close();
  });
});
