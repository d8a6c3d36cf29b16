// The controllers of the cluster: Deployments, scheduling, load balancers, EndpointSlices, Endpoints and Events.
import { type ApiObject, type Draft, dig, isMap, scalar } from "../api/objects/object.ts";
import { resourceOfKind, resources } from "../api/objects/resources.ts";
import type { ApiServer } from "../api/server.ts";
import { CannotStart } from "../cannot-start.ts";
import { type NodePlace, nodePlaces } from "../net/layout.ts";
import type { Attached } from "../net/network.ts";
import { coreEvent, eventFor } from "./events.ts";
import { deletionTime, isTerminating } from "./graceful-deletion.ts";
import { whyUnschedulable } from "./placement.ts";
import { isReady, ownerOf, planSet } from "./sets.ts";
import { containerPorts, endpointsOf, type PlacedPod, slicesOf, withTriggerTime } from "./slices.ts";

/** The network operations that the controllers use. */
export type PodNetwork = {
  attach(label: string, pod: string, node: NodePlace, ports: ReturnType<typeof containerPorts>): Attached;
  detach(label: string): void;
};

/** setTimeout fires immediately for delays of more than 25 days. */
const longestTimerMs = 60_000;

const coreEvents = resourceOfKind("Event", "v1")!;

/** How many Events are kept. */
const eventLimit = 200;

/** A Pod with this annotation set to "false" runs but is not ready. */
export const readyAnnotation = "playground.turnout/ready";

export class Controller {
  readonly #api: ApiServer;
  readonly #network: PodNetwork;
  readonly #attached = new Map<string, Attached>();
  readonly #unsubscribe: () => void;
  #scheduled: NodeJS.Immediate | null = null;
  #timer: NodeJS.Timeout | undefined;
  #eventCount = 0;

  constructor(api: ApiServer, network: PodNetwork) {
    this.#api = api;
    this.#network = network;
    this.#unsubscribe = api.store.subscribe(() => this.#schedule());
  }

  close(): void {
    this.#unsubscribe();
    if (this.#scheduled !== null) clearImmediate(this.#scheduled);
    clearTimeout(this.#timer);
  }

  /** One pass of all controllers; its writes schedule the next pass until nothing changes. */
  reconcile(): void {
    for (const set of this.#api.list("Deployment")) this.#reconcileSet(set);
    this.#removeOrphans();
    this.#removeTerminated();
    // Before placing Pods, so that the addresses are free.
    this.#detachGone();
    for (const pod of this.#api.list("Pod")) this.#placePod(pod);
    const pods = this.#placedPods();
    for (const service of this.#api.list("Service")) this.#serveLoadBalancer(service);
    this.#reconcileSlices(pods);
    this.#reconcileEndpoints();
    this.#reconcileEvents();
  }

  /** Reconciles until nothing changes. */
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
    const plan = () => planSet(set, this.#api.list("Pod"));
    const { start, end } = plan();
    for (const pod of end) this.#api.deleteGracefully(pod);
    for (const pod of start) this.#api.put(pod);
    if (start.length > 0) this.#report(set, "ScalingUp", `Created ${namesOf(start)}`);
    if (end.length > 0) this.#report(set, "ScalingDown", `Deleted ${namesOf(end)}`);
    this.#setStatus(set, plan().status);
  }

  /** Deletes the objects of deleted namespaces and the Pods of deleted Deployments. */
  #removeOrphans(): void {
    const namespaces = new Set(this.#api.list("Namespace").map(({ metadata }) => metadata.name));
    for (const { kind, namespaced } of resources) {
      if (!namespaced || kind === "Event" || kind === "Endpoints") continue;
      for (const object of this.#api.list(kind))
        if (!namespaces.has(object.metadata.namespace ?? "")) this.#remove(object);
    }
    const sets = new Set(this.#api.list("Deployment").map(({ metadata }) => metadata.uid));
    for (const pod of this.#api.list("Pod")) {
      const owner = ownerOf(pod);
      if (owner !== null && !sets.has(owner) && !isTerminating(pod)) this.#api.deleteGracefully(pod);
    }
  }

  /** Deletes Pods after their grace period, and sets a timer for the next one. */
  #removeTerminated(): void {
    clearTimeout(this.#timer);
    const now = Date.now();
    for (const pod of this.#api.list("Pod")) {
      if (deletionTime(pod) > now) continue;
      this.#remove(pod);
      this.#report(pod, "Ended", "Terminated");
    }
    const next = Math.min(...this.#api.list("Pod").map(deletionTime));
    if (next !== Number.POSITIVE_INFINITY)
      this.#timer = setTimeout(() => this.reconcile(), Math.min(next - now, longestTimerMs)).unref();
  }

  /** Schedules a Pod, attaches it to the network, and updates its status. */
  #placePod(pod: ApiObject): void {
    const node = this.#nodeFor(pod);
    if (node === null) {
      if (dig(pod, "status.phase") !== "Pending")
        this.#report(pod, "FailedScheduling", `No node available: ${this.#whyUnschedulable(pod)}`);
      this.#setStatus(pod, { phase: "Pending" });
      return;
    }
    const label = labelOf(pod);
    let place = this.#attached.get(label);
    if (place === undefined || place.node !== node) {
      this.#network.detach(label);
      this.#attached.delete(label);
      place = this.#attach(label, pod, node);
      if (place === undefined) return;
      this.#attached.set(label, place);
      this.#report(pod, "Started", `Started on ${node.name} at ${place.addresses.ipv4}`);
    }
    const ready = dig(pod, "metadata.annotations") as Record<string, string> | undefined;
    const status = ready?.[readyAnnotation] === "false" ? "False" : "True";
    const { ipv4, ipv6 } = place.addresses;
    const startTime = pod.metadata.creationTimestamp;
    if (dig(pod, "status.conditions") !== undefined && isReady(pod) !== (status === "True"))
      this.#report(
        pod,
        status === "True" ? "Ready" : "Unready",
        status === "True" ? "Ready for traffic" : "Not ready for traffic",
      );
    const wanted = {
      phase: "Running",
      podIP: ipv4,
      podIPs: [{ ip: ipv4 }, { ip: ipv6 }],
      hostIP: node.addresses.ipv4,
      startTime,
      conditions: [{ type: "Ready", status }],
      containerStatuses: containerStatuses(pod, status === "True", startTime),
    };
    if (dig(pod, "spec.nodeName") === undefined)
      this.#api.put({ ...pod, spec: { ...(pod.spec as object), nodeName: node.name }, status: wanted });
    else this.#setStatus(pod, wanted);
  }

  /** A Pod that cannot be attached stays pending; the next change retries. */
  #attach(label: string, pod: ApiObject, node: NodePlace): Attached | undefined {
    try {
      return this.#network.attach(label, pod.metadata.name, node, containerPorts(pod));
    } catch (error) {
      if (!(error instanceof CannotStart)) throw error;
      if (dig(pod, "status.phase") !== "Pending") this.#report(pod, "FailedScheduling", error.message);
      this.#setStatus(pod, { phase: "Pending" });
      return undefined;
    }
  }

  /** The named node, or the schedulable node with the fewest Pods of the same Deployment. */
  #nodeFor(pod: ApiObject): NodePlace | null {
    const named = dig(pod, "spec.nodeName");
    if (typeof named === "string") return nodePlaces.find(({ name }) => name === named) ?? null;
    const nodes = this.#api.list("Node");
    const open = nodePlaces.filter(({ name }) => {
      const node = nodes.find(({ metadata }) => metadata.name === name);
      return node !== undefined && whyUnschedulable(pod, node) === null;
    });
    const load = (node: NodePlace) =>
      this.#api
        .list("Pod")
        .filter(
          (other) =>
            dig(other, "spec.nodeName") === node.name && sameSet(other, pod) && !isTerminating(other),
        ).length;
    return open.sort((a, b) => load(a) - load(b))[0] ?? null;
  }

  #whyUnschedulable(pod: ApiObject): string {
    return this.#api
      .list("Node")
      .map((node) => whyUnschedulable(pod, node))
      .filter((reason) => reason !== null)
      .join("; ");
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
      const [ready, terminating] = [isReady(object), isTerminating(object)];
      return [{ object, node: node.name, zone: node.zone, addresses, ready, terminating }];
    });
  }

  /** Allocates the address of a load balancer, or removes it after a change of type. */
  #serveLoadBalancer(service: ApiObject): void {
    const requested = dig(service, "spec.loadBalancerIP");
    const given = dig(service, "status.loadBalancer.ingress");
    const [isWanted, isGiven] = [
      dig(service, "spec.type") === "LoadBalancer",
      Array.isArray(given) && given.length > 0,
    ];
    if (!isWanted && isGiven) this.#setStatus(service, { loadBalancer: {} });
    if (!isWanted || isGiven) return;
    const taken = JSON.stringify(this.#api.list("Service"));
    let next = 100;
    while (taken.includes(`"198.51.100.${next}"`)) next++;
    const ip = typeof requested === "string" ? requested : `198.51.100.${next}`;
    this.#setStatus(service, { loadBalancer: { ingress: [{ ip, ipMode: "VIP" }] } });
  }

  #reconcileSlices(pods: readonly PlacedPod[]): void {
    const wanted = this.#api.list("Service").flatMap((service) => slicesOf(service, pods));
    const names = new Set(wanted.map(({ metadata }) => `${metadata?.namespace}/${metadata?.name}`));
    const known = new Map<string, ApiObject>();
    for (const slice of this.#api.list("EndpointSlice")) {
      const { metadata } = slice;
      known.set(`${metadata.namespace}/${metadata.name}`, slice);
      const mine =
        metadata.labels?.["endpointslice.kubernetes.io/managed-by"] === "endpointslice-controller.k8s.io";
      if (mine && !names.has(`${metadata.namespace}/${metadata.name}`))
        this.#api.remove("EndpointSlice", metadata.namespace ?? "", metadata.name);
    }
    const now = new Date();
    for (const slice of wanted)
      this.#api.put(
        withTriggerTime(slice, known.get(`${slice.metadata?.namespace}/${slice.metadata?.name}`), now),
      );
  }

  /** Builds Endpoints from all EndpointSlices. */
  #reconcileEndpoints(): void {
    const services = this.#api
      .list("Service")
      .filter((service) => dig(service, "spec.type") !== "ExternalName");
    const slices = new Map<string, ApiObject[]>();
    for (const slice of this.#api.list("EndpointSlice")) {
      const { namespace, labels } = slice.metadata;
      const key = `${namespace}/${labels?.["kubernetes.io/service-name"] ?? ""}`;
      const known = slices.get(key);
      if (known === undefined) slices.set(key, [slice]);
      else known.push(slice);
    }
    const wanted = services.map((service) =>
      endpointsOf(service, slices.get(`${service.metadata.namespace}/${service.metadata.name}`) ?? []),
    );
    const names = new Set(wanted.map(({ metadata }) => `${metadata?.namespace}/${metadata?.name}`));
    for (const old of this.#api.list("Endpoints"))
      if (!names.has(`${old.metadata.namespace}/${old.metadata.name}`)) this.#remove(old);
    for (const endpoints of wanted) this.#api.put(endpoints);
  }

  /** Copies Events to the core API group and deletes the oldest. */
  #reconcileEvents(): void {
    const events = this.#api
      .list("Event")
      .sort((a, b) => scalar(a.eventTime).localeCompare(scalar(b.eventTime)));
    const old = events.slice(0, Math.max(0, events.length - eventLimit));
    for (const event of old) {
      this.#remove(event);
      // The copy may be missing: many Events at the same time, or a client deleted it.
      const { name, namespace = "" } = event.metadata;
      if (this.#api.store.has(coreEvents, namespace, name)) this.#remove(coreEvent(event) as ApiObject);
    }
    for (const event of events.slice(old.length)) this.#api.put(coreEvent(event));
  }

  #report(object: ApiObject, reason: string, note: string): void {
    this.#api.put(eventFor(object, reason, note, ++this.#eventCount, Date.now()));
  }

  #setStatus(object: ApiObject, status: object): void {
    this.#api.put({ ...object, metadata: { ...object.metadata, resourceVersion: "" }, status });
  }

  #remove({ apiVersion, kind, metadata }: ApiObject): void {
    this.#api.remove(kind, metadata.namespace ?? "", metadata.name, apiVersion);
  }
}

function namesOf(pods: readonly Draft[]): string {
  return pods.map(({ metadata }) => metadata?.name).join(", ");
}

function containerStatuses(pod: ApiObject, ready: boolean, startedAt: string) {
  const containers = dig(pod, "spec.containers");
  return (Array.isArray(containers) ? containers.filter(isMap) : []).map(({ name, image }) => ({
    name,
    image: image ?? "",
    imageID: "",
    ready,
    started: true,
    restartCount: 0,
    state: { running: { startedAt } },
  }));
}

/** `namespace.name`, also used in the name of the network namespace. */
export function labelOf({ metadata }: ApiObject): string {
  return `${metadata.namespace ?? "default"}.${metadata.name}`;
}

function sameSet(a: ApiObject, b: ApiObject): boolean {
  return ownerOf(a) === ownerOf(b);
}
