// A small Service with two endpoints, as objects for the API server of a test.
import { endpoint, service, slice } from "../objects.ts";
import type { KubeObject } from "../reference/objects.ts";

/** Service `shop/web` and its slice; fields of the Service's spec can be overridden. */
export function shop(spec: Readonly<Record<string, unknown>> = {}): KubeObject[] {
  return [
    { apiVersion: "v1", kind: "Service", ...service({ ...spec }) } as unknown as KubeObject,
    shopSlice(),
  ];
}

/** That slice with other endpoints, as a controller writes it: with the time of the change that led to it. */
export function changedShopSlice(triggered: Date): KubeObject {
  const annotations = { "endpoints.kubernetes.io/last-change-trigger-time": triggered.toISOString() };
  const { namespace, name, labels } = shopSlice().metadata;
  return shopSlice("web-1", {
    metadata: { namespace, name, labels, annotations },
    endpoints: [endpoint("10.180.0.2")],
  });
}

/** A slice of that Service. */
export function shopSlice(name = "web-1", change: object = {}): KubeObject {
  const made = slice([endpoint("10.180.0.1"), endpoint("10.180.1.1")], { metadata: { name }, ...change });
  return { apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice", ...made } as unknown as KubeObject;
}
