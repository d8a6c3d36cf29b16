// `explain` checked by packets: generated clusters under generated configurations, served by our daemon, and whatever
// `explain` reports for a packet is what happens to packets.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { completeConfig } from "../../src/config/complete.ts";
import { nodeRoutes } from "../../src/explain/node-routes.ts";
import type { BothRoutes } from "../../src/explain/resolve.ts";
import { readLocalAddresses } from "../../src/host/local-addresses.ts";
import { familyOf } from "../../src/model/address.ts";
import { type Cell, cellsOf } from "../differential/cells.ts";
import { nodeName } from "../places.ts";
import { generateConfiguration } from "../reference/case-configuration.ts";
import { generateState } from "../reference/cases.ts";
import { enter, type Foothold } from "../reference/foothold.ts";
import type { KubeObject } from "../reference/objects.ts";
import { type Configuration, startProxy } from "../reference/proxy.ts";
import { type Random, seeded } from "../reference/random.ts";
import { snapshotOf } from "../scenario-routes.ts";
import { contradiction, explained } from "./explained.ts";
import { reasonToSkip } from "./netns.ts";
import { createWorld, type World } from "./world.ts";

const root = join(import.meta.dirname, "..", "..");
const program = join(root, "bin", "kube-proxy");
const reason = existsSync(join(root, "dist")) ? reasonToSkip() : "not built; build with: npm run build";

/** `TURNOUT_EXPLAINED`: how many clusters in each mode; each has about 200 packets. */
const clusters = Number(process.env.TURNOUT_EXPLAINED ?? 2);
const firstSeed = Number(process.env.TURNOUT_SEED ?? 11);

describe("explain, checked by packets", () => {
  let world: World;
  let foothold: Foothold;
  beforeAll(async () => {
    if (reason !== null) return;
    world = await createWorld("e");
    foothold = enter(world.node);
  });
  afterAll(async () => {
    await foothold?.leave();
    await world?.close();
  });

  const seeds = Array.from({ length: clusters }, (_, i) => firstSeed + i);
  for (const mode of ["nftables", "iptables"] as const)
    it.for(seeds)(`is right about ${mode} mode, cluster %i`, async (seed, { skip, annotate }) => {
      if (reason !== null) return skip(reason);
      const configuration = withGates(generateConfiguration(seeded(seed), mode), seeded(seed));
      const objects = generateState(seed);
      world.sweep();
      const proxy = await startProxy(foothold, program, configuration, nodeName, objects);
      try {
        await proxy.ready();
        world.forgetFlows();
        const routes = await routesOf(objects, configuration);
        const cells = cellsOf(objects);
        const check = (cell: Cell) => contradiction(world, cell, explained(routes, mode, cell));
        const wrong = (await inParallel(cells, check)).filter((found) => found !== null);
        await annotate(countText(cells));
        expect({ configuration, wrong: wrong.join("\n") }).toEqual({ configuration, wrong: "" });
      } finally {
        await proxy.stop();
        world.sweep();
      }
    });

  /** As `explain --live --config=…` would see the node. */
  async function routesOf(objects: readonly KubeObject[], configuration: Configuration): Promise<BothRoutes> {
    const header = { apiVersion: "kubeproxy.config.k8s.io/v1alpha1", kind: "KubeProxyConfiguration" };
    const text = JSON.stringify({ ...header, ...configuration });
    const completed = completeConfig({}, { name: "generated", text });
    if (!completed.ok) throw new Error(completed.error);
    const localAddresses = await readLocalAddresses({ netns: world.node.path });
    return nodeRoutes(snapshotOf(objects), nodeName, completed.config, { localAddresses });
  }
});

/** Gates that change the results of packets. */
function withGates(configuration: Configuration, random: Random): Configuration {
  const AllowServiceExternalIPs = random.chance(0.8);
  if (configuration.mode !== "nftables" || !random.chance(0.4))
    return { ...configuration, featureGates: { AllowServiceExternalIPs } };
  const nodePortAddresses = random.one([["primary"], ["localhost", "primary"]]);
  const featureGates = { AllowServiceExternalIPs, KubeProxyNFTablesLocalhostNodePorts: true };
  return { ...configuration, nodePortAddresses, featureGates };
}

/** Most of the time is spent waiting for responses that do not come: many wait in parallel. */
async function inParallel<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const waiting = [...items];
  const done: R[] = [];
  const worker = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) done.push(await work(next));
  };
  await Promise.all(Array.from({ length: 200 }, worker));
  return done;
}

/** `166 packets over IPv4, 134 over IPv6` */
function countText(cells: readonly Cell[]): string {
  const six = cells.filter(({ to }) => familyOf(to.address) === "ipv6").length;
  return `${cells.length - six} packets over IPv4, ${six} over IPv6`;
}
