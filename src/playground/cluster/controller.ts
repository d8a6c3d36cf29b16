// The controllers of a cluster in one: sets become Pods, Pods get a place, Services get EndpointSlices.
import type { ApiObject, Draft } from "../api/object.ts";
import { dig, isMap } from "../api/object.ts";
import type { ApiServer } from "../api/server.ts";
import { type NodePlace, nodePlaces } from "../net/layout.ts";
import type { Attached } from "../net/network.ts";
import { containerPorts, type PlacedPod, slicesOf } from "./slices.ts";

/** What the controllers need of the network. */
export type PodNetwork = {
  attach(label: string, pod: string, node: NodePlace, ports: ReturnType<typeof containerPorts>): Attached;
  detach(label: string): void;
};

/** A Pod with this annotation set to "false" runs but is not ready. */
export const readyAnnotation = "playground.turnout/ready";

export class Controller {
  readonly #api: ApiServer;
  readonly #network: PodNetwork;
  readonly #attached = new Map<string, Attached>();
  readonly #unfollow: () => void;
  #scheduled: NodeJS.Immediate | null = null;

  constructor(api: ApiServer, network: PodNetwork) {
    this.#api = api;
    this.#network = network;
    this.#unfollow = api.store.follow(() => this.#schedule());
  }

  close(): void {
    this.#unfollow();
    if (this.#scheduled !== null) clearImmediate(this.#scheduled);
  }

  /** Brings everything to what the objects ask for; what it writes calls it again, until nothing is left to do. */
  reconcile(): void {
    for (const set of this.#api.list("Deployment")) this.#reconcileSet(set);
    this.#removeOrphans();
    for (const pod of this.#api.list("Pod")) this.#placePod(pod);
    this.#detachGone();
    const pods = this.#placedPods();
    for (const service of this.#api.list("Service")) this.#serveLoadBalancer(service);
    this.#reconcileSlices(pods);
  }

  /** Reconciles until nothing is left to do. */
  settle(): void {
    for (let version = -1; version !== this.#api.store.version; ) {
      version = this.#api.store.version;
      this.reconcile();
    }
  }

  #schedule(): void {
    this.#scheduled ??= setImmediate(() => {
      this.#scheduled = null;
      this.reconcile();
    });
  }

  #reconcileSet(set: ApiObject): void {
    const pods = this.#podsOf(set);
    const replicas = Number(dig(set, "spec.replicas") ?? 1);
    for (const pod of pods.slice(replicas)) this.#remove(pod);
    const names = new Set(
      this.#api
        .list("Pod")
        .filter((pod) => isIn(pod, set))
        .map(({ metadata }) => metadata.name),
    );
    for (let missing = replicas - pods.length, number = 1; missing > 0; number++) {
      const name = `${set.metadata.name}-${number}`;
      if (names.has(name)) continue;
      this.#api.put(podOf(set, name));
      missing--;
    }
    const ready = this.#podsOf(set).filter(isReady).length;
    this.#setStatus(set, {
      replicas,
      readyReplicas: ready,
      availableReplicas: ready,
      updatedReplicas: replicas,
    });
  }

  #podsOf(set: ApiObject): ApiObject[] {
    return this.#api
      .list("Pod")
      .filter((pod) => isIn(pod, set) && ownerOf(pod) === set.metadata.uid)
      .sort((a, b) => numberOf(a) - numberOf(b));
  }

  #removeOrphans(): void {
    const living = new Set(this.#api.list("Deployment").map(({ metadata }) => metadata.uid));
    for (const pod of this.#api.list("Pod")) {
      const owner = ownerOf(pod);
      if (owner !== null && !living.has(owner)) this.#remove(pod);
    }
  }

  /** Schedules a Pod, connects it, and says so in its status. */
  #placePod(pod: ApiObject): void {
    const node = this.#nodeFor(pod);
    if (node === null) {
      this.#setStatus(pod, { phase: "Pending" });
      return;
    }
    const label = labelOf(pod);
    let place = this.#attached.get(label);
    if (place === undefined || place.node !== node) {
      this.#network.detach(label);
      place = this.#network.attach(label, pod.metadata.name, node, containerPorts(pod));
      this.#attached.set(label, place);
    }
    const ready = dig(pod, "metadata.annotations") as Record<string, string> | undefined;
    const status = ready?.[readyAnnotation] === "false" ? "False" : "True";
    const { ipv4, ipv6 } = place.addresses;
    const wanted = {
      phase: "Running",
      podIP: ipv4,
      podIPs: [{ ip: ipv4 }, { ip: ipv6 }],
      hostIP: node.addresses.ipv4,
      conditions: [{ type: "Ready", status }],
    };
    if (dig(pod, "spec.nodeName") === undefined)
      this.#api.put({ ...pod, spec: { ...(pod.spec as object), nodeName: node.name }, status: wanted });
    else this.#setStatus(pod, wanted);
  }

  /** Where it says, or on the node with the fewest Pods of its kind that takes any. */
  #nodeFor(pod: ApiObject): NodePlace | null {
    const named = dig(pod, "spec.nodeName");
    if (typeof named === "string") return nodePlaces.find(({ name }) => name === named) ?? null;
    const open = nodePlaces.filter(({ name }) => !this.#isCordoned(name));
    const load = (node: NodePlace) =>
      this.#api
        .list("Pod")
        .filter((other) => dig(other, "spec.nodeName") === node.name && sameKind(other, pod)).length;
    return open.sort((a, b) => load(a) - load(b))[0] ?? null;
  }

  #isCordoned(name: string): boolean {
    const node = this.#api.list("Node").find(({ metadata }) => metadata.name === name);
    return node === undefined || dig(node, "spec.unschedulable") === true;
  }

  #detachGone(): void {
    const living = new Set(this.#api.list("Pod").map(labelOf));
    for (const label of this.#attached.keys()) {
      if (living.has(label)) continue;
      this.#attached.delete(label);
      this.#network.detach(label);
    }
  }

  #placedPods(): PlacedPod[] {
    return this.#api.list("Pod").flatMap((object) => {
      const place = this.#attached.get(labelOf(object));
      if (place === undefined) return [];
      const { node, addresses } = place;
      return [{ object, node: node.name, zone: node.zone, addresses, ready: isReady(object) }];
    });
  }

  /** A load balancer's address: the one that was asked for, or one of its own. */
  #serveLoadBalancer(service: ApiObject): void {
    if (dig(service, "spec.type") !== "LoadBalancer") return;
    const asked = dig(service, "spec.loadBalancerIP");
    const given = dig(service, "status.loadBalancer.ingress");
    if (Array.isArray(given) && given.length > 0) return;
    const taken = JSON.stringify(this.#api.list("Service"));
    let next = 100;
    while (taken.includes(`"198.51.100.${next}"`)) next++;
    const ip = typeof asked === "string" ? asked : `198.51.100.${next}`;
    this.#setStatus(service, { loadBalancer: { ingress: [{ ip }] } });
  }

  #reconcileSlices(pods: readonly PlacedPod[]): void {
    const wanted = this.#api.list("Service").flatMap((service) => slicesOf(service, pods));
    const names = new Set(wanted.map(({ metadata }) => `${metadata?.namespace}/${metadata?.name}`));
    for (const { metadata } of this.#api.list("EndpointSlice")) {
      const mine =
        metadata.labels?.["endpointslice.kubernetes.io/managed-by"] === "endpointslice-controller.k8s.io";
      if (mine && !names.has(`${metadata.namespace}/${metadata.name}`))
        this.#api.remove("EndpointSlice", metadata.namespace ?? "", metadata.name);
    }
    for (const slice of wanted) this.#api.put(slice);
  }

  #setStatus(object: ApiObject, status: object): void {
    this.#api.put({ ...object, metadata: { ...object.metadata, resourceVersion: "" }, status });
  }

  #remove({ kind, metadata }: ApiObject): void {
    this.#api.remove(kind, metadata.namespace ?? "", metadata.name);
  }
}

/** `namespace.name`: also the name of the Pod's place in the network. */
export function labelOf({ metadata }: ApiObject): string {
  return `${metadata.namespace ?? "default"}.${metadata.name}`;
}

function podOf(set: ApiObject, name: string): Draft & { readonly kind: string } {
  const template = dig(set, "spec.template");
  const { metadata, spec } = isMap(template) ? template : {};
  const { name: setName, namespace, uid } = set.metadata;
  return {
    kind: "Pod",
    metadata: {
      ...(isMap(metadata) ? metadata : {}),
      name,
      ...(namespace === undefined ? {} : { namespace }),
      ownerReferences: [{ apiVersion: "apps/v1", kind: "Deployment", name: setName, uid, controller: true }],
    },
    spec: isMap(spec) ? spec : {},
  };
}

function ownerOf(pod: ApiObject): string | null {
  const owners = dig(pod, "metadata.ownerReferences");
  const owner = Array.isArray(owners)
    ? owners.find((each) => isMap(each) && each.kind === "Deployment")
    : undefined;
  return isMap(owner) && typeof owner.uid === "string" ? owner.uid : null;
}

function numberOf({ metadata }: ApiObject): number {
  return Number(/-(\d+)$/.exec(metadata.name)?.[1] ?? 0);
}

function isIn(pod: ApiObject, set: ApiObject): boolean {
  return pod.metadata.namespace === set.metadata.namespace;
}

function sameKind(a: ApiObject, b: ApiObject): boolean {
  return ownerOf(a) === ownerOf(b);
}

function isReady(pod: ApiObject): boolean {
  const conditions = dig(pod, "status.conditions");
  return (
    Array.isArray(conditions) &&
    conditions.some((each) => isMap(each) && each.type === "Ready" && each.status === "True")
  );
}
