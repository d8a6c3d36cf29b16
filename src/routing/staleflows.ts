// Which tracked UDP flows are stale: their Endpoint no longer serves, but without help they would go on hitting it.
import { endpointKey, type ServicePort } from "../model/snapshot.ts";
import { type FrontendId, holderOf, type Routes } from "./routes.ts";

/** A tracked UDP flow: where it was sent, and where its answers come from. */
export type UdpFlow = {
  readonly destination: string;
  readonly destinationPort: number;
  readonly replySource: string;
  readonly replySourcePort: number;
};

/**
 * Only `serving` counts: a flow may stay on an Endpoint that drains or that policies and hints no longer choose. Flows
 * to a NodePort without any serving Endpoint are left alone, whatever address they were sent to.
 */
export function isStale(flow: UdpFlow, routes: Routes): boolean {
  const byAddress = portAt(routes, `${flow.destination}/udp/${flow.destinationPort}`);
  if (byAddress !== undefined) return !servingOf(byAddress).has(answererOf(flow));
  const byNodePort = portAt(routes, `node/udp/${flow.destinationPort}`);
  if (byNodePort === undefined) return false;
  const serving = servingOf(byNodePort);
  return serving.size > 0 && !serving.has(answererOf(flow));
}

/** The ServicePort that holds a Frontend. */
export function portAt(routes: Routes, id: FrontendId): ServicePort | undefined {
  const key = holderOf(routes, id);
  return key === undefined ? undefined : routes.servicePorts.get(key);
}

/** The keys of the Endpoints to which flows are kept. */
export function servingOf(port: ServicePort): ReadonlySet<string> {
  let serving = known.get(port);
  if (serving === undefined) {
    serving = new Set(port.endpoints.filter((endpoint) => endpoint.serving).map(endpointKey));
    known.set(port, serving);
  }
  return serving;
}

const known = new WeakMap<ServicePort, ReadonlySet<string>>();

function answererOf({ replySource: address, replySourcePort: port }: UdpFlow): string {
  return endpointKey({ address, port });
}
