// Reads what we need of the Node object of this machine.
import { type Address, type Cidr, familyOf, parseAddress } from "../model/address.ts";
import { quoted } from "../model/problem.ts";
import type { ClusterNode } from "../model/snapshot.ts";
import { cidrOf } from "./addresses.ts";
import type { Identity } from "./identity.ts";
import { labels, type Raw } from "./objects.ts";
import {
  addProblem,
  fields,
  hasLegalNames,
  list,
  nameOrNothing,
  type Parsed,
  parsed,
  type Report,
  reportOn,
  text,
  texts,
} from "./read.ts";

export function parseNode(who: Identity, object: unknown): Parsed<ClusterNode> {
  const report = reportOn(who);
  const raw = fields(report, object, "", "");
  if (!hasLegalNames(report)) return parsed<ClusterNode>(report, null);
  const metadata = fields(report, raw.metadata, "", "metadata");
  const label = fields(report, metadata.labels, "metadata", "labels");
  const spec = fields(report, raw.spec, "", "spec");
  const node: ClusterNode = {
    name: who.name,
    zone: nameOrNothing(report, label[labels.zone], "metadata", `labels["${labels.zone}"]`),
    ...addressesOf(report, fields(report, raw.status, "", "status")),
    podCIDRs: podCIDRsOf(report, spec),
    eligibleForLoadBalancers: !isBeingDeleted(report, metadata) && !isTaintedForDeletion(report, spec),
  };
  return parsed(report, node);
}

/** InternalIPs before ExternalIPs; of these the first, and the first of the other family; then all the others. */
function addressesOf(report: Report, status: Raw): Pick<ClusterNode, "addresses" | "otherAddresses"> {
  const found: Readonly<Record<string, Address[]>> = { InternalIP: [], ExternalIP: [] };
  for (const [i, item] of list(report, status.addresses, "status", "addresses").entries()) {
    const at = `status.addresses[${i}]`;
    const raw = fields(report, item, "", at);
    const type = text(report, raw.type, at, "type");
    const written = text(report, raw.address, at, "address");
    if (!Object.hasOwn(found, type)) continue;
    const address = parseAddress(written);
    if (address !== null) found[type]!.push(address);
    else addProblem(report, "invalid-address", `${at}.address`, `is ${quoted(written)}, not an IP address`);
  }
  const all = [...found.InternalIP!, ...found.ExternalIP!];
  const first = all[0];
  if (first === undefined) return { addresses: [] };
  const second = all.find((address) => familyOf(address) !== familyOf(first));
  const addresses = second === undefined ? [first] : [first, second];
  const otherAddresses = all.filter((address) => !addresses.includes(address));
  return otherAddresses.length === 0 ? { addresses } : { addresses, otherAddresses };
}

/** In the order of the Node, which determines its primary family. */
function podCIDRsOf(report: Report, spec: Raw): readonly Cidr[] {
  return texts(report, spec.podCIDRs, "spec", "podCIDRs")
    .map((written, i) => cidrOf(report, written, `spec.podCIDRs[${i}]`))
    .filter((cidr) => cidr !== null);
}

function isBeingDeleted(report: Report, metadata: Raw): boolean {
  return text(report, metadata.deletionTimestamp, "metadata", "deletionTimestamp") !== "";
}

/** Only this taint matters: cordoned, NotReady or otherwise tainted nodes still take load-balancer traffic. */
function isTaintedForDeletion(report: Report, spec: Raw): boolean {
  return list(report, spec.taints, "spec", "taints").some((item, i) => {
    const raw = fields(report, item, "spec", `taints[${i}]`);
    return text(report, raw.key, `spec.taints[${i}]`, "key") === "ToBeDeletedByClusterAutoscaler";
  });
}
