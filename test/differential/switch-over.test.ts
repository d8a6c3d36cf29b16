// From the real kube-proxy to Turnout and back, on a living node: no connection breaks, no new one fails.
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findAssets } from "../assets.ts";
import { openConversation } from "../kernel/conversation.ts";
import { reasonToSkip } from "../kernel/netns.ts";
import { resultText, tryOnce } from "../kernel/send-packet.ts";
import { createWorld, type World } from "../kernel/world.ts";
import { nodeName } from "../places.ts";
import { generateState } from "../reference/cases.ts";
import { enter, type Foothold } from "../reference/foothold.ts";
import type { KubeObject } from "../reference/objects.ts";
import { addressOf, clusterCIDRs, clusterIP } from "../reference/places.ts";
import { type Mode, startProxy } from "../reference/proxy.ts";
import { ourProgram, reasonNotToRun } from "./program.ts";
import { differingLines } from "./saves.ts";

const assets = findAssets("kube-proxy");
const reason = reasonToSkip() ?? (assets.found ? reasonNotToRun(ourProgram) : assets.reason);

const steady = { address: clusterIP("ipv4", 200), port: 80 };
const objects = [...generateState(7), ...steadyService()];

describe("switching over", () => {
  let world: World;
  let foothold: Foothold;
  beforeAll(async () => {
    if (reason !== null) return;
    world = await createWorld("s");
    foothold = enter(world.node);
  });
  afterAll(async () => {
    await foothold?.leave();
    await world?.close();
  });

  it.for<Mode>(["nftables", "iptables"])("%s: there and back, without a gap", async (mode, { skip }) => {
    if (reason !== null || !assets.found) return skip(reason ?? "");
    const start = (program: string) =>
      startProxy(foothold, program, { mode, clusterCIDR: clusterCIDRs }, nodeName, objects);
    const client = { netns: world.at.L2, poller: world.poller, source: null };
    world.sweep();

    let running = await start(assets.paths["kube-proxy"]);
    await running.ready();
    const before = saves(mode);
    const conversation = openConversation(client, "tcp", steady);
    const endpoint = await conversation.talk();
    expect(endpoint).toBe(`${addressOf("L1", "ipv4")}:8080`);

    for (const next of [ourProgram, assets.paths["kube-proxy"]]) {
      const watch = watchConnections();
      await running.stop();
      running = await start(next);
      await running.ready();
      await sleep(1500);
      expect({ next, failures: await watch.end() }).toEqual({ next, failures: [] });
      expect({ next, endpoint: await conversation.talk() }).toEqual({ next, endpoint });
      for (const [command, save] of before)
        expect({ next, lines: differingLines(save, world.node.run(command)) }).toEqual({ next, lines: [] });
    }
    conversation.close();
    await running.stop();

    /** Opens one connection after another; returns the results of those that failed. */
    function watchConnections(): { end(): Promise<string[]> } {
      let going = true;
      const failures: string[] = [];
      const loop = (async () => {
        while (going) {
          const result = await tryOnce(client, "tcp", steady);
          if (result.kind !== "answered") failures.push(resultText(result));
          await sleep(2);
        }
      })();
      return {
        async end() {
          going = false;
          await loop;
          return failures;
        },
      };
    }
  });

  function saves(mode: Mode): readonly (readonly [string, string])[] {
    const commands = mode === "iptables" ? ["iptables-save", "ip6tables-save"] : [];
    return commands.map((command) => [command, world.node.run(command)] as const);
  }
});

function steadyService(): readonly KubeObject[] {
  const metadata = { name: "steady", namespace: "shop" };
  const clusterIPs = [steady.address];
  return [
    {
      apiVersion: "v1",
      kind: "Service",
      metadata,
      spec: {
        type: "ClusterIP",
        clusterIP: steady.address,
        clusterIPs,
        ipFamilies: ["IPv4"],
        sessionAffinity: "None",
        ports: [{ name: "http", protocol: "TCP", port: steady.port }],
      },
      status: { loadBalancer: {} },
    },
    {
      apiVersion: "discovery.k8s.io/v1",
      kind: "EndpointSlice",
      metadata: { ...metadata, name: "steady-x", labels: { "kubernetes.io/service-name": metadata.name } },
      addressType: "IPv4",
      ports: [{ name: "http", protocol: "TCP", port: 8080 }],
      endpoints: [{ addresses: [addressOf("L1", "ipv4")], nodeName, conditions: { ready: true } }],
    },
  ];
}
