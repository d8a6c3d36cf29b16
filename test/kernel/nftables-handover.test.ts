// From the real kube-proxy to ours and back, over the same table: connections continue, and new ones find no gap.
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { families } from "../../src/model/address.ts";
import { findAssets } from "../assets.ts";
import type { KubeObject } from "../cluster.ts";
import { inFamily, places } from "../places.ts";
import { readScenario } from "../scenarios.ts";
import { clients } from "../stories.ts";
import { type Conversation, openConversation } from "./conversation.ts";
import { reasonToSkip } from "./netns.ts";
import { type NftablesNode, startNftables } from "./nftables-node.ts";
import { type Probe, resultOf, senderAt } from "./probe.ts";
import { kubeProxyProgram } from "./program.ts";
import { steadyTraffic } from "./traffic.ts";
import { createWorld, type World } from "./world.ts";

const assets = findAssets("kube-proxy");
const reason = assets.found ? reasonToSkip() : assets.reason;

const wideAddress = "172.30.0.210";
const { settings, objects: sticky } = readScenario("affinity");
const { objects: udp } = readScenario("udp-flows");
const objects = [...new Map([...sticky, ...udp, ...wide()].map((each) => [identity(each), each])).values()];

describe.each([false, true])("handing over to and from the real kube-proxy, owned: %s", (owned) => {
  let world: World;
  beforeEach(async () => {
    if (reason === null) world = await createWorld();
  });
  afterEach(() => world?.close());

  it("interrupts nothing, there and back, and keeps every client's endpoint", async ({ skip }) => {
    if (reason !== null || !assets.found) return skip(reason ?? "");
    const theirs = kubeProxyProgram(assets.paths["kube-proxy"], "nftables");
    const pass: { ours: NftablesNode | null } = { ours: null };
    await theirs.apply(world, objects, settings);
    const talks = conversations(world);
    const pins = await endpointsOf(world);
    const stillTheSame = async () => {
      expect(await Promise.all(talks.map((talk) => talk.talk()))).not.toContain("silence");
      expect(await endpointsOf(world)).toEqual(pins);
    };
    await Promise.all(talks.map((talk) => talk.talk()));
    const traffic = steadyTraffic(world, newFlows());
    try {
      for (const round of [1, 2]) {
        await theirs.clear(world);
        pass.ours = await startNftables(world, objects, settings, owned);
        expect(await pass.ours.differences(), `round ${round}`).toBe(0);
        const rules = world.node.run("nft", "list", "ruleset");
        expect(rules).not.toMatch(/chain service-\w+-udp-flows/);
        expect(rules).toMatch(/numgen random mod 2 map @endpoints-\w+-large\/wide\/udp\//);
        await stillTheSame();
        await pass.ours.close();
        await theirs.apply(world, objects, settings);
        await stillTheSame();
      }
    } finally {
      await pass.ours?.close();
      await theirs.clear(world);
      for (const talk of talks) talk.close();
      expect(await traffic.stop()).toEqual([]);
    }
    expect(traffic.sent()).toBeGreaterThan(100);
  });
});

/** Enough addresses that it has its own slot maps. */
function wide(): KubeObject[] {
  const metadata = { namespace: "large", name: "wide" };
  return [
    {
      apiVersion: "v1",
      kind: "Service",
      metadata,
      spec: {
        type: "ClusterIP",
        clusterIP: wideAddress,
        clusterIPs: [wideAddress],
        ports: [{ port: 80, protocol: "UDP" }],
        externalIPs: Array.from({ length: 3000 }, (_, i) => `198.18.${i >> 8}.${i & 255}`),
      },
    },
    {
      apiVersion: "discovery.k8s.io/v1",
      kind: "EndpointSlice",
      metadata: { ...metadata, name: "wide-1", labels: { "kubernetes.io/service-name": "wide" } },
      addressType: "IPv4",
      ports: [{ name: "", port: 8080, protocol: "UDP" }],
      endpoints: [places.L1, places.R1].map((address) => ({
        addresses: [address],
        nodeName: address === places.L1 ? "node-a" : "node-b",
        conditions: { ready: true },
      })),
    },
  ];
}

function newFlows(): Probe[] {
  const to = (address: string, port: number) => ({ address, port, protocol: "udp" as const });
  const toLarge: Probe = { from: { kind: "pod", address: places.L2 }, to: to(wideAddress, 80) };
  const others = families.flatMap((family): Probe[] => [
    {
      from: { kind: "pod", address: inFamily(places.L2, family) },
      to: to(inFamily("172.30.0.85", family), 80),
    },
    {
      from: { kind: "node", address: inFamily(places.host, family) },
      to: to(inFamily("172.30.0.85", family), 80),
    },
    {
      from: { kind: "outside", address: inFamily(places.X, family) },
      to: to(inFamily(places.host, family), 30085),
    },
  ]);
  return [toLarge, ...others];
}

/** Connections that stay open all the time. */
function conversations(world: World): Conversation[] {
  return families.flatMap((family) => [
    openConversation(senderAt(world, inFamily(places.L2, family)), "tcp", {
      address: inFamily("172.30.0.80", family),
      port: 80,
    }),
    openConversation(senderAt(world, inFamily(places.X, family)), "tcp", {
      address: inFamily(places.host, family),
      port: 30080,
    }),
  ]);
}

/** Where each of the outside clients of the sticky Service ends up. */
async function endpointsOf(world: World): Promise<Record<string, string>> {
  const found = families.flatMap((family) =>
    clients.map(async (client) => {
      const address = inFamily(client, family);
      const to = { address: inFamily("172.30.0.80", family), port: 80, protocol: "tcp" as const };
      const result = await resultOf(world, { from: { kind: "outside", address }, to });
      return [address, result.kind === "answered" ? result.endpoint : result.kind] as const;
    }),
  );
  return Object.fromEntries(await Promise.all(found));
}

function identity({ kind, metadata }: (typeof sticky)[number]): string {
  return `${kind}/${metadata.namespace ?? ""}/${metadata.name}`;
}
