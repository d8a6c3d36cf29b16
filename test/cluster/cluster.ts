// A small cluster for tests: the world's namespaces, a real control plane, and one kube-proxy on the node under test.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import { families } from "../../src/model/address.ts";
import type { Cell, Protocol, Sender } from "../differential/cells.ts";
import { type Outcomes, observe } from "../differential/observe.ts";
import { createWorld, type World } from "../kernel/world.ts";
import { inFamily, nodeName, nodePodNetwork, otherNodeName, otherNodePodNetwork, places } from "../places.ts";
import type { Answer, Json } from "./client.ts";
import { type Binaries, type ControlPlane, startControlPlane } from "./control-plane.ts";

export type Cluster = {
  readonly world: World;
  readonly plane: ControlPlane;
  /** Creates, changes or deletes; throws when the API refuses. */
  readonly create: (path: string, object: object) => Promise<Json>;
  readonly patch: (path: string, change: object) => Promise<Json>;
  readonly remove: (path: string, options?: object) => Promise<void>;
  /** Waits until packets from a place to an address have exactly these outcomes. */
  meets(from: Sender["place"], to: Target, ...outcomes: readonly string[]): Promise<void>;
  /** The same with more patience. */
  meetsWithin(
    seconds: number,
    from: Sender["place"],
    to: Target,
    ...outcomes: readonly string[]
  ): Promise<void>;
  close(): Promise<void>;
};

/** `172.30.0.7`, 80, and the protocol when it is not TCP. */
export type Target = { readonly address: string; readonly port: number; readonly protocol?: Protocol };

export async function createCluster(binaries: Binaries): Promise<Cluster> {
  const world = await createWorld("c");
  const plane = await startControlPlane(world.node, binaries).catch(async (error: unknown) => {
    await world.close();
    throw error;
  });
  const cluster: Cluster = {
    world,
    plane,
    create: async (path, object) => accepted("POST", path, await plane.api("POST", path, object)),
    patch: async (path, change) => accepted("PATCH", path, await plane.api("PATCH", path, change)),
    remove: async (path, options) => void accepted("DELETE", path, await plane.api("DELETE", path, options)),
    meets: (from, to, ...outcomes) => meets(world, 20, from, to, new Set(outcomes)),
    meetsWithin: (seconds, from, to, ...outcomes) => meets(world, seconds, from, to, new Set(outcomes)),
    async close() {
      await plane.close();
      await world.close();
    },
  };
  try {
    await addNodes(cluster);
    return cluster;
  } catch (error) {
    await cluster.close();
    throw error;
  }
}

function accepted(method: string, path: string, { code, body }: Answer): Json {
  if (code >= 300)
    throw new Error(`${method} ${path}: ${code} ${(body as { message?: string }).message ?? ""}`);
  return body;
}

/** Two nodes in two zones, as kubelets would have registered them. */
async function addNodes({ create, patch }: Cluster): Promise<void> {
  for (const [name, place, network, zone] of [
    [nodeName, "host", nodePodNetwork, "east"],
    [otherNodeName, "RN", otherNodePodNetwork, "west"],
  ] as const) {
    const podCIDRs = families.map((family) => inFamily(network, family));
    const labels = { "kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone };
    await create("/api/v1/nodes", {
      metadata: { name, labels },
      spec: { podCIDR: podCIDRs[0], podCIDRs },
    });
    await patch(`/api/v1/nodes/${name}/status`, {
      status: {
        addresses: families.map((family) => ({
          type: "InternalIP",
          address: inFamily(places[place], family),
        })),
        conditions: [{ type: "Ready", status: "True", reason: "KubeletReady", message: "" }],
        allocatable: { cpu: "4", memory: "8Gi", pods: "110" },
        capacity: { cpu: "4", memory: "8Gi", pods: "110" },
      },
    });
  }
}

async function meets(
  world: World,
  seconds: number,
  place: Sender["place"],
  to: Target,
  wanted: Outcomes,
): Promise<void> {
  const cell: Cell = {
    from: { place, source: place === "X" ? places.X : null },
    protocol: to.protocol ?? "tcp",
    to,
    service: "",
    kind: "cluster IP",
    sticky: false,
  };
  const deadline = Date.now() + seconds * 1000;
  let met: Outcomes = new Set();
  while (Date.now() < deadline) {
    met = new Set();
    // More tries only when the first was as wanted: a wrong one has settled the matter. Those that are to meet silence
    // wait for it together.
    if (!wanted.has("silence")) await observe(world, cell, 1, met);
    if ([...met].every((outcome) => wanted.has(outcome))) await observe(world, cell, wanted.size * 8, met);
    if (met.size === wanted.size && [...met].every((outcome) => wanted.has(outcome))) return;
    await sleep(100);
  }
  expect([...met].sort(), `${place} → ${to.address}:${to.port}/${cell.protocol}`).toEqual([...wanted].sort());
}

/** Gives a ServiceAccount's token to a file, as the kubelet does for a pod; the file can be rotated. */
export async function writeToken({ plane, create }: Cluster, file: string): Promise<void> {
  const answer = await create("/api/v1/namespaces/kube-system/serviceaccounts/kube-proxy/token", {
    spec: { expirationSeconds: 600 },
  });
  writeFileSync(join(plane.folder, file), answer.status.token);
}
