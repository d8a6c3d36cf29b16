// Builds the EndpointSlices of a Service like the EndpointSlice controller. Pure.
import { type Family, families } from "../../src/model/address.ts";
import { same } from "../../src/model/same.ts";
import { type ApiObject, type Draft, dig, hasLabels, isMap, scalar } from "../api/objects/object.ts";

export type Slice = Draft & { readonly kind: "EndpointSlice" };

/** A Pod that is attached to the network. */
export type PlacedPod = {
  readonly object: ApiObject;
  readonly node: string;
  readonly zone: string;
  readonly addresses: Readonly<Record<Family, string>>;
  readonly ready: boolean;
  readonly terminating: boolean;
};

/** Empty for a Service without a selector: its slices are created by other clients. */
export function slicesOf(service: ApiObject, pods: readonly PlacedPod[]): Slice[] {
  const selector = dig(service, "spec.selector");
  if (!isMap(selector) || Object.keys(selector).length === 0) return [];
  const chosen = pods.filter(
    ({ object }) =>
      object.metadata.namespace === service.metadata.namespace && hasLabels(object.metadata.labels, selector),
  );
  const wanted = dig(service, "spec.ipFamilies");
  return families
    .filter((family) => (Array.isArray(wanted) ? wanted : ["IPv4"]).includes(typeNames[family]))
    .flatMap((family) => slicesOfFamily(service, chosen, family));
}

const triggerTime = "endpoints.kubernetes.io/last-change-trigger-time";

/** When its endpoints last changed; proxies measure their delay from it. */
export function withTriggerTime(slice: Slice, before: ApiObject | undefined, now: Date): Slice {
  const known = before?.metadata.annotations;
  const kept = isMap(known) && same(before?.endpoints, slice.endpoints) ? scalar(known[triggerTime]) : "";
  const annotations = { [triggerTime]: kept === "" ? now.toISOString() : kept };
  return { ...slice, metadata: { ...slice.metadata, annotations } };
}

/** The deprecated Endpoints object: addresses of one family, grouped by ports. */
export function endpointsOf(
  service: ApiObject,
  slices: readonly ApiObject[],
): Draft & { readonly kind: "Endpoints" } {
  const { name, namespace, labels } = service.metadata;
  const mine = slices.filter(
    ({ metadata }) =>
      metadata.labels?.["kubernetes.io/service-name"] === name && metadata.namespace === namespace,
  );
  const family = mine.some(({ addressType }) => addressType === "IPv4") ? "IPv4" : "IPv6";
  const subsets = mine
    .filter(({ addressType }) => addressType === family)
    .map(({ endpoints, ports }) => {
      const all = Array.isArray(endpoints) ? endpoints.filter(isMap) : [];
      const [ready, rest] = [true, false].map((wanted) =>
        all
          .filter((each) => (dig(each, "conditions.ready") !== false) === wanted)
          .filter((each) => dig(each, "conditions.terminating") !== true)
          .map(({ addresses, nodeName, targetRef }) => ({
            ip: Array.isArray(addresses) ? scalar(addresses[0]) : "",
            ...(nodeName === undefined ? {} : { nodeName }),
            ...(targetRef === undefined ? {} : { targetRef }),
          })),
      );
      return {
        ...(ready!.length === 0 ? {} : { addresses: ready }),
        ...(rest!.length === 0 ? {} : { notReadyAddresses: rest }),
        ports,
      };
    });
  return {
    apiVersion: "v1",
    kind: "Endpoints",
    metadata: {
      name,
      ...(namespace === undefined ? {} : { namespace }),
      ...(labels === undefined ? {} : { labels }),
    },
    subsets,
  };
}

const typeNames = { ipv4: "IPv4", ipv6: "IPv6" } as const;

/** Pods with the same resolved ports share a slice. */
function slicesOfFamily(service: ApiObject, pods: readonly PlacedPod[], family: Family): Slice[] {
  const groups = new Map<string, PlacedPod[]>();
  for (const pod of pods) {
    const ports = JSON.stringify(portsOn(service, pod.object));
    groups.set(ports, [...(groups.get(ports) ?? []), pod]);
  }
  const { name, namespace, uid } = service.metadata;
  return [...groups]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([ports, members], index) => ({
      apiVersion: "discovery.k8s.io/v1",
      kind: "EndpointSlice",
      metadata: {
        name: `${name}-${family}${index === 0 ? "" : `-${index}`}`,
        ...(namespace === undefined ? {} : { namespace }),
        labels: {
          "kubernetes.io/service-name": name,
          "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
        },
        ownerReferences: [{ apiVersion: "v1", kind: "Service", name, uid, controller: true }],
      },
      addressType: typeNames[family],
      ports: JSON.parse(ports) as unknown,
      endpoints: members.map((pod) => endpointOf(pod, family, dig(service, "spec.trafficDistribution"))),
    }));
}

function portsOn(service: ApiObject, pod: ApiObject): unknown[] {
  const ports = dig(service, "spec.ports");
  return (Array.isArray(ports) ? ports.filter(isMap) : []).flatMap(
    ({ name = "", port, protocol, targetPort = port }) => {
      const number = typeof targetPort === "number" ? targetPort : containerPort(pod, scalar(targetPort));
      return number === undefined ? [] : [{ name, port: number, protocol }];
    },
  );
}

function containerPort(pod: ApiObject, name: string): number | undefined {
  return containerPorts(pod).find((port) => port.name === name)?.port;
}

/** The ports a Pod declares; without any, 8080. */
export function containerPorts(pod: ApiObject): { name: string; port: number; protocol: "TCP" | "UDP" }[] {
  const containers = dig(pod, "spec.containers");
  const declared = (Array.isArray(containers) ? containers.filter(isMap) : [])
    .flatMap(({ ports }) => (Array.isArray(ports) ? ports.filter(isMap) : []))
    .flatMap(({ name, containerPort: port, protocol }) =>
      typeof port === "number"
        ? [
            {
              name: scalar(name),
              port,
              protocol: protocol === "UDP" ? ("UDP" as const) : ("TCP" as const),
            },
          ]
        : [],
    );
  return declared.length > 0 ? declared : [{ name: "", port: 8080, protocol: "TCP" }];
}

function endpointOf(pod: PlacedPod, family: Family, distribution: unknown) {
  const { object, node, zone, ready, terminating } = pod;
  const sameZone = { forZones: [{ name: zone }] };
  const hints =
    distribution === "PreferSameNode"
      ? { ...sameZone, forNodes: [{ name: node }] }
      : distribution === "PreferClose" || distribution === "PreferSameZone"
        ? sameZone
        : null;
  return {
    addresses: [pod.addresses[family]],
    conditions: { ready: ready && !terminating, serving: ready, terminating },
    nodeName: node,
    zone,
    targetRef: { kind: "Pod", name: object.metadata.name, namespace: object.metadata.namespace },
    ...(hints === null ? {} : { hints }),
  };
}
