// Intended differences from kube-proxy, each with its reason; docs/compatibility.md lists the same for users.
import type { Family } from "../../src/model/address.ts";
import type { KubeObject } from "../reference/objects.ts";
import type { Mode } from "../reference/proxy.ts";
import { type Cell, cellsOf, type FrontendKind } from "./cells.ts";
import { isAnswer } from "./compare.ts";
import type { Outcomes } from "./observe.ts";

export type KnownDifference = {
  readonly mode: Mode;
  readonly reason: string;
  readonly covers: (cell: Cell, reference: Outcomes, ours: Outcomes) => boolean;
};

export const knownDifferences: readonly KnownDifference[] = [
  {
    mode: "nftables",
    reason: "a ServiceCIDR counts immediately; kube-proxy writes it with its next full sync",
    covers: ({ kind }, reference, ours) =>
      kind === "unserved cluster IP" && isOne(reference, untouched) !== isOne(ours, untouched),
  },
  {
    mode: "nftables",
    reason: "node ports that are served on loopback are served for UDP too; kube-proxy rejects it",
    covers: ({ kind, protocol }, reference, ours) =>
      kind === "node port on loopback" &&
      protocol === "udp" &&
      isOne(reference, rejected) &&
      [...ours].every(isAnswer),
  },
];

const rejected = ["icmp 3/3", "icmp 1/4"];

/** What the gateway of the test's world returns for an address that no proxy handles. */
const untouched = ["icmp 3/1", "icmp 1/3"];

function isOne(outcomes: Outcomes, wanted: readonly string[]): boolean {
  return outcomes.size === 1 && wanted.some((outcome) => outcomes.has(outcome));
}

export function reasonFor(mode: Mode, cell: Cell, reference: Outcomes, ours: Outcomes): string | null {
  const known = knownDifferences.find((one) => one.mode === mode && one.covers(cell, reference, ours));
  return known?.reason ?? null;
}

/**
 * After a start kube-proxy searches for stale UDP flows when a UDP Service of the family has an endpoint; Turnout always does.
 * What was left to a Service that has lost all of them meanwhile goes on in kube-proxy, and is cut by us.
 */
export function outlivesStart(objects: readonly KubeObject[], family: Family): boolean {
  const slices = objects.filter(({ kind }) => kind === "EndpointSlice") as unknown as readonly Slice[];
  return !slices.some(
    ({ addressType, ports, endpoints }) =>
      addressType.toLowerCase() === family &&
      endpoints.length > 0 &&
      ports.some(({ protocol }) => protocol === "UDP"),
  );
}

/**
 * Flows to a UDP Frontend that left (a Service, an address or a port was removed) go on in kube-proxy v1.37, and are cut by
 * us, as in kube-proxy since kubernetes PR 141371.
 */
export function hasLeft({ protocol, to }: Cell, objects: readonly KubeObject[]): boolean {
  if (protocol !== "udp") return false;
  const isThere = (cell: Cell) =>
    cell.protocol === "udp" &&
    cell.to.address === to.address &&
    cell.to.port === to.port &&
    !withoutFrontend.includes(cell.kind);
  return !cellsOf(objects).some(isThere);
}

const withoutFrontend: readonly FrontendKind[] = [
  "undefined port",
  "other protocol",
  "unserved cluster IP",
  "unused node port",
];

type Slice = {
  readonly addressType: string;
  readonly ports: readonly { readonly protocol: string }[];
  readonly endpoints: readonly unknown[];
};
