// Namespaces, Pods and Services as the cluster tests create them; a kubelet's part of a Pod is played here.
import { families } from "../../src/model/address.ts";
import { inFamily, nodeName, otherNodeName, type Place, places } from "../places.ts";
import type { Json } from "./client.ts";
import type { Cluster, Target } from "./cluster.ts";

export type PodPlace = Extract<Place, "L1" | "L2" | "R1" | "R2" | "host">;

/** One test's own corner of the cluster. */
export type Corner = {
  /** Starts a Pod in a place of the world; it is selected by every Service here. */
  pod(place: PodPlace, options?: { readonly ready?: boolean; readonly ports?: Json }): Promise<void>;
  /** Deletes a Pod that stays, terminating, until `end`. */
  terminate(place: PodPlace): Promise<void>;
  setReady(place: PodPlace, ready: boolean): Promise<void>;
  end(place: PodPlace): Promise<void>;
  service(spec: object): Promise<Json>;
  change(spec: object): Promise<Json>;
  setIngress(...addresses: readonly string[]): Promise<void>;
  /** Removes the Services and Pods, so that they do not affect later tests. */
  clear(): Promise<void>;
  readonly path: string;
};

let count = 0;

export async function createCorner({ create, patch, remove, plane }: Cluster): Promise<Corner> {
  const namespace = `test-${count++}`;
  await create("/api/v1/namespaces", { metadata: { name: namespace } });
  const path = `/api/v1/namespaces/${namespace}`;
  const podPath = (place: PodPlace): string => `${path}/pods/${place.toLowerCase()}`;
  const servicePath = `${path}/services/web`;
  const setReady = async (place: PodPlace, ready: boolean): Promise<void> =>
    patch(`${podPath(place)}/status`, { status: podStatus(place, ready) });
  return {
    path,
    setReady,
    async pod(place, { ready = true, ports = [] } = {}) {
      await create(`${path}/pods`, podObject(place, ports));
      await setReady(place, ready);
    },
    terminate: (place) => remove(podPath(place), { gracePeriodSeconds: 300 }),
    end: (place) => remove(podPath(place), { gracePeriodSeconds: 0 }),
    service: (spec) =>
      create(`${path}/services`, {
        metadata: { name: "web" },
        spec: { selector: { app: "web" }, ports: [{ port: 80, targetPort: 8080 }], ...spec },
      }),
    change: (spec) => patch(servicePath, { spec }),
    setIngress: (...addresses) =>
      patch(`${servicePath}/status`, {
        status: { loadBalancer: { ingress: addresses.map((ip) => ({ ip })) } },
      }),
    async clear() {
      for (const kind of ["services", "pods"]) {
        const { body } = await plane.api("GET", `${path}/${kind}`);
        const names = (body.items as Json[]).map(({ metadata }) => metadata.name as string);
        await Promise.all(names.map((name) => remove(`${path}/${kind}/${name}`, { gracePeriodSeconds: 0 })));
      }
    },
  };
}

/** The cluster address of a Service in a family it has. */
export function clusterTarget(service: Json, port = 80, at = 0): Target {
  return { address: service.spec.clusterIPs[at], port };
}

export function nodePortTarget(service: Json, place: Place = "host"): Target {
  return { address: places[place], port: service.spec.ports[0].nodePort };
}

function podObject(place: PodPlace, ports: Json): object {
  return {
    metadata: { name: place.toLowerCase(), labels: { app: "web" } },
    spec: {
      nodeName: place === "host" || place.startsWith("L") ? nodeName : otherNodeName,
      ...(place === "host" ? { hostNetwork: true } : {}),
      containers: [{ name: "echo", image: "echo", ports }],
    },
  };
}

function podStatus(place: PodPlace, ready: boolean): object {
  const ips = families.map((family) => ({ ip: inFamily(places[place], family) }));
  return {
    phase: "Running",
    podIP: ips[0]!.ip,
    podIPs: ips,
    conditions: [{ type: "Ready", status: ready ? "True" : "False" }],
  };
}
