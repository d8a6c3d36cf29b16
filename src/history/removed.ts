// Addresses and ports that Services had and no longer have, with the endpoints they led to, by the changes of the past.
import { type Family, families } from "../model/address.ts";
import { endpointKey, portLabel, type ServicePort } from "../model/snapshot.ts";
import type { FrontendId } from "../routing/routes.ts";
import { type HistoryLog, recordedIn } from "./log.ts";
import { Past, type PortStep } from "./past.ts";

/** Of one IP family. */
export type RemovedFrontends = {
  readonly kind: "removed";
  readonly family: Family;
  readonly frontends: Readonly<Record<FrontendId, RemovedFrontend>>;
};

export type RemovedFrontend = {
  /** The ServicePort that had it last. */
  readonly label: string;
  /** `address:port` of the endpoints that it had, as far as the history knows. */
  readonly endpoints: readonly string[];
};

/** `undefined`: between two changes, so that the caller can pause. */
export function* removedFrontends(log: HistoryLog): Generator<RemovedFrontends | undefined> {
  const found: Found = { ipv4: new Map(), ipv6: new Map() };
  if (log.latest !== null) {
    const past = new Past(log.latest);
    for (const stored of log.stored.toReversed()) {
      for (const step of past.undo(recordedIn(stored).undo).ports) note(step, found);
      yield undefined;
    }
  }
  for (const family of families) {
    const frontends = [...found[family]].map(([id, { label, endpoints }]) => [
      id,
      { label, endpoints: [...endpoints] },
    ]);
    yield { kind: "removed", family, frontends: Object.fromEntries(frontends) };
  }
}

type Found = Readonly<
  Record<Family, Map<FrontendId, { readonly label: string; readonly endpoints: Set<string> }>>
>;

/** The newest change comes first: it names who had a Frontend last. */
function note({ family, before, after }: PortStep, found: Found): void {
  if (before === undefined) return;
  const kept = new Set(after === undefined ? [] : frontendIds(after));
  const label = portLabel(before);
  for (const id of frontendIds(before)) {
    let known = found[family].get(id);
    if (known === undefined) {
      if (kept.has(id)) continue;
      known = { label, endpoints: new Set() };
      found[family].set(id, known);
    }
    if (known.label !== label) continue;
    for (const endpoint of before.endpoints) known.endpoints.add(endpointKey(endpoint));
  }
}

function frontendIds({ protocol, port, nodePort, ...of }: ServicePort): readonly FrontendId[] {
  const addresses = [of.clusterIP, ...of.externalIPs, ...of.loadBalancerIPs];
  const atNode = nodePort === 0 ? [] : [`node/${protocol}/${nodePort}`];
  return [...addresses.map((address) => `${address}/${protocol}/${port}`), ...atNode];
}
