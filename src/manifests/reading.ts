// One object in the model's types, before it is added to a Cluster.
import type { ClusterNode } from "../model/snapshot.ts";
import { type ParsedSlice, parseEndpointSlice } from "./endpointslice.ts";
import type { Identity } from "./identity.ts";
import { parseNode } from "./node.ts";
import type { Parsed } from "./read.ts";
import { parseService, type Service } from "./service.ts";
import { parseServiceCIDR, type ServiceCIDR } from "./servicecidr.ts";

export type Reading =
  | { readonly kind: "Service"; readonly who: Identity; readonly parsed: Parsed<Service> }
  | { readonly kind: "EndpointSlice"; readonly who: Identity; readonly parsed: ParsedSlice }
  | { readonly kind: "Node"; readonly who: Identity; readonly parsed: Parsed<ClusterNode> }
  | { readonly kind: "ServiceCIDR"; readonly who: Identity; readonly parsed: Parsed<ServiceCIDR> };

/** Takes any JSON, and keeps nothing of it. */
export function readObject(who: Identity, object: unknown): Reading {
  switch (who.kind) {
    case "Service":
      return { kind: who.kind, who, parsed: parseService(who, object) };
    case "EndpointSlice":
      return { kind: who.kind, who, parsed: parseEndpointSlice(who, object) };
    case "Node":
      return { kind: who.kind, who, parsed: parseNode(who, object) };
    case "ServiceCIDR":
      return { kind: who.kind, who, parsed: parseServiceCIDR(who, object) };
  }
}
