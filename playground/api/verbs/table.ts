// Server-side tables for `kubectl get`.
import type { IncomingMessage } from "node:http";
import { joinHostPort } from "../../../src/model/address.ts";
import type { ApiRequest } from "../http/request.ts";
import { type ApiObject, dig, isMap } from "../objects/object.ts";
import { apiVersionOf } from "../objects/resources.ts";

/** Whether the client prefers a table. */
export function wantsTable(message: IncomingMessage): boolean {
  return `${message.headers.accept ?? ""}`.includes("as=Table");
}

/** The table of a list or a single object; ages are relative to `now`. */
export function asTable(request: ApiRequest, body: object, now: number) {
  const columns = columnsOf(request.resource.kind);
  const objects = "items" in body ? (body.items as ApiObject[]) : [body as ApiObject];
  const metadata = "items" in body ? (body as { metadata?: unknown }).metadata : undefined;
  const version = dig(body, "metadata.resourceVersion");
  return {
    kind: "Table",
    apiVersion: "meta.k8s.io/v1",
    metadata: metadata ?? { resourceVersion: version },
    columnDefinitions: columns.map(({ name, wide = false }) => ({
      name,
      type: "string",
      format: name === "Name" ? "name" : "",
      description: "",
      priority: wide ? 1 : 0,
    })),
    rows: objects.map((object) => ({
      cells: columns.map(({ cell }) => cell(object, now)),
      object: shownObject(request, object),
    })),
  };
}

/** The object of a row, for `kubectl get --sort-by`. */
function shownObject({ resource, query }: ApiRequest, object: ApiObject): unknown {
  return query.get("includeObject") === "Object"
    ? { ...object, apiVersion: apiVersionOf(resource), kind: resource.kind }
    : { kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1", metadata: object.metadata };
}

type Column = {
  readonly name: string;
  /** Shown with `-o wide` only. */
  readonly wide?: boolean;
  readonly cell: (object: ApiObject, now: number) => string;
};

const name: Column = { name: "Name", cell: ({ metadata }) => metadata.name };
const age: Column = {
  name: "Age",
  cell: ({ metadata }, now) => duration(now - Date.parse(metadata.creationTimestamp)),
};
const field = (title: string, path: string, wide = false): Column => ({
  name: title,
  wide,
  cell: (object) => textOf(dig(object, path)),
});

/** Columns of `-o wide` follow the age. */
function columnsOf(kind: string): readonly Column[] {
  if (kind === "Event") return eventColumns;
  const all = columnsByKind[kind] ?? [];
  return [name, ...all.filter(({ wide }) => !wide), age, ...all.filter(({ wide }) => wide)];
}

const columnsByKind: Readonly<Record<string, readonly Column[]>> = {
  Service: [
    field("Type", "spec.type"),
    field("Cluster-IP", "spec.clusterIP"),
    { name: "External-IP", cell: externalAddresses },
    { name: "Port(s)", cell: servicePorts },
    { name: "Selector", wide: true, cell: (object) => labels(dig(object, "spec.selector")) },
  ],
  Pod: [
    { name: "Ready", cell: (object) => (isReady(object) ? "1/1" : "0/1") },
    { name: "Status", cell: podStatus },
    { name: "Restarts", cell: () => "0" },
    field("IP", "status.podIP", true),
    field("Node", "spec.nodeName", true),
  ],
  Node: [
    { name: "Status", cell: nodeStatus },
    { name: "Roles", cell: () => "<none>" },
    field("Version", "status.nodeInfo.kubeletVersion"),
    { name: "Internal-IP", wide: true, cell: internalAddresses },
    {
      name: "Zone",
      wide: true,
      cell: ({ metadata }) => metadata.labels?.["topology.kubernetes.io/zone"] ?? "",
    },
    field("Pod-CIDRs", "spec.podCIDRs", true),
  ],
  Deployment: [
    {
      name: "Ready",
      cell: (object) =>
        `${textOf(dig(object, "status.readyReplicas"), "0")}/${textOf(dig(object, "spec.replicas"), "1")}`,
    },
    { name: "Up-to-date", cell: (object) => textOf(dig(object, "status.updatedReplicas"), "0") },
    { name: "Available", cell: (object) => textOf(dig(object, "status.readyReplicas"), "0") },
    { name: "Selector", wide: true, cell: (object) => labels(dig(object, "spec.selector.matchLabels")) },
  ],
  EndpointSlice: [
    field("AddressType", "addressType"),
    { name: "Ports", cell: (object) => listOf(object.ports, "port") },
    { name: "Endpoints", cell: (object) => listOf(object.endpoints, "addresses") },
  ],
  Namespace: [field("Status", "status.phase")],
  ServiceCIDR: [field("CIDRs", "spec.cidrs")],
  Endpoints: [{ name: "Endpoints", cell: endpointAddresses }],
};

const eventColumns: readonly Column[] = [
  {
    name: "Last Seen",
    cell: (event, now) => {
      const last = textOf(event.lastTimestamp ?? dig(event, "series.lastObservedTime") ?? event.eventTime);
      return duration(now - Date.parse(last));
    },
  },
  field("Type", "type"),
  field("Reason", "reason"),
  {
    name: "Object",
    cell: (event) => {
      const about = event.involvedObject ?? event.regarding;
      return `${textOf(dig(about, "kind")).toLowerCase()}/${textOf(dig(about, "name"))}`;
    },
  },
  { name: "Message", cell: (event) => textOf(event.message ?? event.note) },
];

const fewAddresses = 3;

function endpointAddresses({ subsets }: ApiObject): string {
  const all = (Array.isArray(subsets) ? subsets.filter(isMap) : []).flatMap(({ addresses, ports }) =>
    (Array.isArray(ports) ? ports.filter(isMap) : []).flatMap(({ port }) =>
      (Array.isArray(addresses) ? addresses.filter(isMap) : []).map(({ ip }) =>
        joinHostPort(textOf(ip), Number(port)),
      ),
    ),
  );
  if (all.length === 0) return "<none>";
  const more = all.length > fewAddresses ? ` + ${all.length - fewAddresses} more...` : "";
  return all.slice(0, fewAddresses).join(",") + more;
}

function externalAddresses(object: ApiObject): string {
  if (dig(object, "spec.type") === "ExternalName") return textOf(dig(object, "spec.externalName"));
  const ingress = dig(object, "status.loadBalancer.ingress");
  const addresses = [listOf(ingress, "ip"), textOf(dig(object, "spec.externalIPs"))];
  return addresses.filter((text) => text !== "<none>").join(",") || "<none>";
}

function servicePorts(object: ApiObject): string {
  const ports = dig(object, "spec.ports");
  if (!Array.isArray(ports)) return "<none>";
  return ports
    .filter(isMap)
    .map(
      ({ port, nodePort, protocol = "TCP" }) =>
        `${textOf(port)}${nodePort ? `:${textOf(nodePort)}` : ""}/${textOf(protocol)}`,
    )
    .join(",");
}

function isReady(object: ApiObject): boolean {
  const conditions = dig(object, "status.conditions");
  return (
    Array.isArray(conditions) &&
    conditions.some((each) => isMap(each) && each.type === "Ready" && each.status === "True")
  );
}

function podStatus(object: ApiObject): string {
  return object.metadata.deletionTimestamp === undefined
    ? textOf(dig(object, "status.phase"), "Pending")
    : "Terminating";
}

function nodeStatus(object: ApiObject): string {
  return dig(object, "spec.unschedulable") === true ? "Ready,SchedulingDisabled" : "Ready";
}

function internalAddresses(object: ApiObject): string {
  const addresses = dig(object, "status.addresses");
  const own = Array.isArray(addresses) ? addresses.filter(isMap) : [];
  return listOf(
    own.filter(({ type }) => type === "InternalIP"),
    "address",
  );
}

function labels(value: unknown): string {
  return isMap(value)
    ? Object.entries(value)
        .map(([key, label]) => `${key}=${textOf(label)}`)
        .join(",")
    : "<none>";
}

function listOf(value: unknown, key: string): string {
  if (!Array.isArray(value) || value.length === 0) return "<none>";
  return value.map((each) => textOf(isMap(each) ? each[key] : each)).join(",");
}

function textOf(value: unknown, absent = "<none>"): string {
  if (Array.isArray(value)) return value.length === 0 ? absent : value.map((each) => textOf(each)).join(",");
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean"
    ? `${value}`
    : absent;
}

/** As kubectl writes ages: `42s`, `5m`, `3h`, `2d`. */
function duration(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 120) return `${seconds}s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)}m`;
  return seconds < 172_800 ? `${Math.floor(seconds / 3600)}h` : `${Math.floor(seconds / 86_400)}d`;
}
