// Which flows `turnout flows` prints: those of a Service, a pod, a place or a NodePort.
import type { Address } from "../model/address.ts";
import type { FlowView } from "../model/flow.ts";
import type { Protocol } from "../model/snapshot.ts";
import { protocolOf } from "./activity.ts";
import type { Attribution } from "./attribute.ts";

export type FlowSelector =
  /** Of any Service; with `others`, all flows. */
  | { readonly kind: "all"; readonly others: boolean }
  | {
      readonly kind: "service";
      /** `namespace/name` */
      readonly service: string;
      /** A port's number or name; null: all. */
      readonly port: string | null;
      readonly protocol: Protocol | null;
    }
  /** From or to one of these: the addresses of a pod. */
  | { readonly kind: "addresses"; readonly addresses: ReadonlySet<Address> }
  /** An endpoint, or the address and port of a Service. */
  | { readonly kind: "place"; readonly address: Address; readonly port: number }
  | { readonly kind: "nodePort"; readonly port: number; readonly protocol: Protocol | null };

export type Matches = (flow: FlowView, attribution: Attribution) => boolean;

export function matcherOf(selector: FlowSelector): Matches {
  switch (selector.kind) {
    case "all":
      return selector.others ? () => true : (_, { kind }) => kind !== "other";
    case "service":
      return (_, attribution) => isOfService(attribution, selector);
    case "addresses": {
      const { addresses } = selector;
      return ({ source, destination, replySource }) =>
        addresses.has(source) || addresses.has(replySource) || addresses.has(destination);
    }
    case "place":
      return (flow) =>
        (flow.replySourcePort === selector.port && flow.replySource === selector.address) ||
        (flow.destinationPort === selector.port && flow.destination === selector.address);
    case "nodePort":
      return (flow, attribution) =>
        flow.destinationPort === selector.port &&
        attribution.kind === "service" &&
        attribution.route.frontend.kind === "nodePort" &&
        (selector.protocol === null || protocolOf(flow) === selector.protocol);
  }
}

function isOfService(
  attribution: Attribution,
  { service, port, protocol }: Extract<FlowSelector, { kind: "service" }>,
): boolean {
  if (attribution.kind === "deleted") return attribution.service === service;
  if (attribution.kind !== "service") return false;
  const found = attribution.routed.port;
  return (
    found.service === service &&
    (port === null || String(found.port) === port || found.portName === port) &&
    (protocol === null || found.protocol === protocol)
  );
}
