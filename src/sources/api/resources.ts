// The four resources we watch, with their paths and selectors: exactly those of kube-proxy.
import { identify } from "../../manifests/identity.ts";
import type { Kind } from "../../manifests/objects.ts";
import { type Reading, readObject } from "../../manifests/reading.ts";
import { ApiFailure, isMap } from "./failure.ts";

export type WatchedResource = {
  readonly kind: Kind;
  readonly plural: string;
  readonly path: string;
  /** The same for lists and watches. */
  readonly selectors: Readonly<Record<string, string>>;
  /** Not served by every cluster: the first Snapshot does not wait for it. */
  readonly optional: boolean;
};

export function watchedResources(nodeName: string): Readonly<Record<Kind, WatchedResource>> {
  return {
    Service: {
      kind: "Service",
      plural: "services",
      path: "/api/v1/services",
      selectors: {
        labelSelector: "!service.kubernetes.io/service-proxy-name",
        fieldSelector: "spec.clusterIP!=None",
      },
      optional: false,
    },
    EndpointSlice: {
      kind: "EndpointSlice",
      plural: "endpointslices",
      path: "/apis/discovery.k8s.io/v1/endpointslices",
      selectors: { labelSelector: "!service.kubernetes.io/headless" },
      optional: false,
    },
    Node: {
      kind: "Node",
      plural: "nodes",
      path: "/api/v1/nodes",
      selectors: { fieldSelector: `metadata.name=${nodeName.replace(/[\\,=]/g, "\\$&")}` },
      optional: false,
    },
    ServiceCIDR: {
      kind: "ServiceCIDR",
      plural: "servicecidrs",
      path: "/apis/networking.k8s.io/v1/servicecidrs",
      selectors: {},
      optional: true,
    },
  };
}

/** A received object: in the model's types, and its version. */
export type Item = {
  readonly reading: Reading;
  /** Of a Node; empty for other kinds. */
  readonly uid: string;
  readonly version: string;
};

/**
 * `object`: the fields we use of it; nothing of it is kept. Throws when it is not an object: then the rest of the stream is not
 * reliable either.
 */
export function itemOf(kind: Kind, raw: unknown, object: unknown): Item {
  const metadata = isMap(raw) ? raw.metadata : undefined;
  if (!isMap(metadata)) throw new ApiFailure("garbled", `Cannot read a ${kind}: it has no metadata`);
  return {
    reading: readObject(identify(kind, object), object),
    uid: kind === "Node" ? str(metadata.uid) : "",
    version: str(metadata.resourceVersion),
  };
}

/** Whether a version is older than another. Versions that are not decimal numbers cannot be compared: never. */
export function isOlder(version: string, than: string): boolean {
  if (!decimal.test(version) || !decimal.test(than)) return false;
  return version.length === than.length ? version < than : version.length < than.length;
}

const decimal = /^[1-9][0-9]*$/;

function str(value: unknown): string {
  return typeof value === "string" ? value : "";
}
