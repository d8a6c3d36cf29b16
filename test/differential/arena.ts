// Two equal worlds with a kube-proxy in each: gives both the same cluster and waits until both have made it real.
import { setTimeout as sleep } from "node:timers/promises";
import type { ApiServer } from "../../playground/api/server.ts";
import { families } from "../../src/model/address.ts";
import { tryOnce } from "../kernel/send-packet.ts";
import { createWorld, type World } from "../kernel/world.ts";
import { nodeName } from "../places.ts";
import { enter, type Foothold } from "../reference/foothold.ts";
import { type KubeObject, replaceObjects } from "../reference/objects.ts";
import { addressOf, clusterIP } from "../reference/places.ts";
import { type Configuration, type RunningProxy, startProxy } from "../reference/proxy.ts";

export type Side = { readonly world: World; readonly proxy: RunningProxy; readonly foothold: Foothold };

/** The real kube-proxy's side first. */
export type Sides = readonly [reference: Side, ours: Side];

export type Arena = {
  /** Starts both programs on a cluster, in worlds without any rule; what a history before has left is ended. */
  start(configuration: Configuration, objects: readonly KubeObject[]): Promise<Sides>;
  /** Ends both programs and starts them again over what they have left in the kernel. */
  restart(sides: Sides, configuration: Configuration, objects: readonly KubeObject[]): Promise<Sides>;
  /** Changes the cluster on both sides and waits until packets reach the new state. */
  show(sides: Sides, objects: readonly KubeObject[]): Promise<void>;
  /** Ends both programs, unless another history has started meanwhile. */
  stop(sides: Sides): Promise<void>;
  close(): Promise<void>;
};

export async function createArena(programs: readonly [reference: string, ours: string]): Promise<Arena> {
  const worlds = [await createWorld("a"), await createWorld("b")] as const;
  const footholds = worlds.map(({ node }) => enter(node));
  let current: Sides | null = null;
  let step = 0;
  /** Whether both have just been started. */
  let fresh = true;
  const startOn = async (
    i: 0 | 1,
    ...how: readonly [Configuration, readonly KubeObject[]]
  ): Promise<Side> => {
    const [configuration, objects] = how;
    const foothold = footholds[i]!;
    const proxy = await startProxy(foothold, programs[i], configuration, nodeName, objects);
    return { world: worlds[i], foothold, proxy };
  };
  const begin = async (...how: readonly [Configuration, readonly KubeObject[]]): Promise<Sides> => {
    const [reference, ours] = await Promise.allSettled([startOn(0, ...how), startOn(1, ...how)]);
    if (reference.status === "rejected") throw reference.reason;
    if (ours.status === "rejected") throw ours.reason;
    current = [reference.value, ours.value];
    fresh = true;
    return current;
  };
  /** A history that failed or was abandoned must not affect the next. */
  const clear = async (): Promise<void> => {
    const left = current;
    current = null;
    await Promise.all((left ?? []).map(({ proxy }) => proxy.stop()));
    await Promise.all(footholds.map((foothold) => foothold.leave()));
    for (const world of worlds) world.sweep();
  };
  return {
    async start(...how) {
      await clear();
      return begin(...how);
    },
    async restart(sides, ...how) {
      if (sides !== current) throw new Error(overtaken);
      await Promise.all(sides.map(({ proxy }) => proxy.stop()));
      return begin(...how);
    },
    async show(sides, objects) {
      const isCurrent = (): boolean => sides === current;
      if (!isCurrent()) throw new Error(overtaken);
      // Services before their slices: what both see in between must not depend on which watch is faster.
      for (const kinds of [["Node", "ServiceCIDR", "Service"], ["EndpointSlice"]]) {
        const now = ++step;
        await Promise.all(sides.map((side) => showOn(side, objects, kinds, now, isCurrent)));
        if (fresh) for (const { proxy } of sides) changeZone(proxy.api, objects);
        fresh = false;
      }
    },
    async stop(sides) {
      if (sides === current) await clear();
    },
    async close() {
      await clear();
      for (const world of worlds) await world.close();
    },
  };
}

/**
 * On a busy machine kube-proxy v1.37 may miss the Node's zone at its start, and learns it only when it changes: the first
 * event can come before its listener is registered. So it changes here.
 */
function changeZone(api: ApiServer, objects: readonly KubeObject[]): void {
  for (const node of objects.filter(({ kind }) => kind === "Node")) {
    const labels = { ...(node.metadata.labels as object), "topology.kubernetes.io/zone": "elsewhere" };
    api.put({ ...node, metadata: { ...node.metadata, labels } });
    api.put(node);
  }
}

const overtaken = "Cannot go on: another history has started";

async function showOn(
  { proxy, world }: Side,
  objects: readonly KubeObject[],
  kinds: string[],
  step: number,
  isCurrent: () => boolean,
): Promise<void> {
  replaceObjects(proxy.api, [...objects, ...sentinelObjects(step - 1)], kinds);
  await proxy.ready();
  // Each kind of object has its own connection: the sentinel must not overtake the others.
  await sleep(100);
  for (const object of sentinelObjects(step)) proxy.api.put(object);
  const sender = { netns: world.node, poller: world.poller, source: null };
  const deadline = Date.now() + 30_000;
  for (const family of families) {
    const to = { address: clusterIP(family, sentinelNumber), port: sentinelPort(step) };
    while ((await tryOnce(sender, "tcp", to)).kind !== "answered") {
      if (!isCurrent()) throw new Error(overtaken);
      if (Date.now() > deadline)
        throw new Error(
          `The rules in ${world.node.name} did not follow the cluster:\n${proxy.log().slice(-4000)}`,
        );
      await sleep(30);
    }
  }
}

const sentinelNumber = 249;

function sentinelPort(step: number): number {
  return 10_000 + step;
}

/** The last change of every state is a new port of this Service: when it answers, all before it is in place. */
function sentinelObjects(step: number): readonly KubeObject[] {
  const metadata = { name: "sentinel", namespace: "zz-test" };
  const clusterIPs = families.map((family) => clusterIP(family, sentinelNumber));
  const service: KubeObject = {
    apiVersion: "v1",
    kind: "Service",
    metadata,
    spec: {
      type: "ClusterIP",
      clusterIP: clusterIPs[0],
      clusterIPs,
      ipFamilies: ["IPv4", "IPv6"],
      ports: [{ name: `step-${step}`, protocol: "TCP", port: sentinelPort(step) }],
      sessionAffinity: "None",
    },
    status: { loadBalancer: {} },
  };
  return [
    service,
    ...families.map((family) => ({
      apiVersion: "discovery.k8s.io/v1",
      kind: "EndpointSlice",
      metadata: {
        ...metadata,
        name: `sentinel-${family}`,
        labels: { "kubernetes.io/service-name": metadata.name },
      },
      addressType: family === "ipv4" ? "IPv4" : "IPv6",
      ports: [{ name: `step-${step}`, protocol: "TCP", port: 8080 }],
      endpoints: [{ addresses: [addressOf("L2", family)], nodeName, conditions: { ready: true } }],
    })),
  ];
}
