// Reads the ports and endpoints of an EndpointSlice.
import { type Address, type Family, familyOf, parseAddress } from "../model/address.ts";
import { flatText } from "../model/flat-text.ts";
import { quoted } from "../model/problem.ts";
import type { Endpoint, ServiceName } from "../model/snapshot.ts";
import { type Identity, isName } from "./identity.ts";
import { labels, type Raw, triggerAnnotation } from "./objects.ts";
import { type SlicePort, slicePortsOf } from "./ports.ts";
import {
  addProblem,
  fields,
  flag,
  hasLegalNames,
  list,
  nameOrNothing,
  type Parsed,
  parsed,
  placesIn,
  type Report,
  reportOn,
  text,
} from "./read.ts";

/** Every endpoint answers on every port. */
export type Slice = {
  /** `namespace/name`. */
  readonly key: string;
  readonly owner: ServiceName;
  readonly family: Family;
  readonly ports: readonly SlicePort[];
  /** On the first of the ports: most slices have no other, and these Endpoints go into the Snapshot as they are. */
  readonly endpoints: readonly Endpoint[];
  /** Indices of the terminating ones: of two entries for the same address and port these yield. */
  readonly terminating: readonly number[];
  /** Names of the pods, in the order of the endpoints; empty text where it is unknown. Absent: all are. */
  readonly pods?: readonly string[];
};

/** A slice, and its last change trigger time (ms since 1970, null when absent). */
export type ParsedSlice = { readonly slice: Parsed<Slice>; readonly triggeredAt: number | null };

/** Value null: not for this proxy (headless, FQDN, no Service named), or refused. */
export function parseEndpointSlice(who: Identity, object: unknown): ParsedSlice {
  const report = reportOn(who);
  const raw = fields(report, object, "", "");
  const metadata = fields(report, raw.metadata, "", "metadata");
  const label = fields(report, metadata.labels, "metadata", "labels");
  const family = addressFamilies.get(text(report, raw.addressType, "", "addressType"));
  const concernsUs = family !== undefined && label[labels.headless] === undefined;
  const owner = concernsUs && hasLegalNames(report) ? ownerOf(report, who, label) : null;
  if (!concernsUs || owner === null) return { slice: parsed<Slice>(report, null), triggeredAt: null };
  const ports = slicePortsOf(report, raw);
  const { endpoints, terminating, pods } = endpointsOf(report, raw, family, ports[0]?.port ?? 0);
  // Without spreads: V8 gives such an object the room that it needs, and no more.
  const slice: Slice =
    pods === undefined
      ? { key: who.key, owner, family, ports, endpoints, terminating }
      : { key: who.key, owner, family, ports, endpoints, terminating, pods };
  const triggeredAt = triggerTime(report, metadata);
  return { slice: parsed(report, slice), triggeredAt };
}

const addressFamilies: ReadonlyMap<string, Family> = new Map([
  ["IPv4", "ipv4"],
  ["IPv6", "ipv6"],
]);

const ownerField = `metadata.labels["${labels.serviceName}"]`;
const triggerField = `metadata.annotations["${triggerAnnotation}"]`;

function ownerOf(report: Report, who: Identity, label: Raw): ServiceName | null {
  const name = text(report, label[labels.serviceName], "", ownerField);
  if (isName(name)) return flatText("/", who.namespace, name);
  if (name === "")
    addProblem(report, "missing-field", ownerField, "is missing; the slice belongs to no Service");
  else
    addProblem(
      report,
      "invalid-name",
      ownerField,
      `is ${quoted(name)}, not a legal name; the slice is ignored`,
    );
  return null;
}

function endpointsOf(
  report: Report,
  raw: Raw,
  family: Family,
  port: number,
): Pick<Slice, "endpoints" | "terminating" | "pods"> {
  const found: Endpoints = { endpoints: [], terminating: [], pods: [] };
  const items = list(report, raw.endpoints, "", "endpoints");
  for (let i = 0; i < items.length; i++) {
    const at = place(i);
    addEndpoint(found, report, fields(report, items[i], "", at), at, family, port);
  }
  // A list that grew holds room for at least sixteen more; a copy holds none.
  return {
    endpoints: found.endpoints.slice(),
    terminating: found.terminating.length === 0 ? noneTerminate : found.terminating,
    ...(found.pods.some((name) => name !== "") ? { pods: found.pods.slice() } : {}),
  };
}

const noneTerminate: readonly number[] = [];

const place = placesIn("endpoints");

type Endpoints = {
  readonly endpoints: Endpoint[];
  readonly terminating: number[];
  readonly pods: string[];
};

function addEndpoint(
  found: Endpoints,
  report: Report,
  raw: Raw,
  at: string,
  family: Family,
  port: number,
): void {
  const conditions = fields(report, raw.conditions, at, "conditions");
  const ready = flag(report, conditions.ready, true, at, "conditions.ready");
  const serving = flag(report, conditions.serving, true, at, "conditions.serving");
  const terminating = flag(report, conditions.terminating, false, at, "conditions.terminating");
  const state = ready ? "ready" : serving && terminating ? "draining" : "unready";
  const hints = fields(report, raw.hints, at, "hints");
  const nodeName = nameOrNothing(report, raw.nodeName, at, "nodeName");
  const zoneHints = hintsOf(report, hints.forZones, at, "hints.forZones");
  const nodeHints = hintsOf(report, hints.forNodes, at, "hints.forNodes");
  const address = addressOf(report, raw.addresses, at, family);
  if (address === null) return;
  if (terminating) found.terminating.push(found.endpoints.length);
  found.pods.push(podOf(raw.targetRef));
  found.endpoints.push({ address, port, state, serving, nodeName, zoneHints, nodeHints });
}

/** Only a name to print: whatever else is there is no Problem. */
function podOf(reference: unknown): string {
  const { kind, name } = (reference ?? nothing) as Raw;
  return kind === "Pod" && typeof name === "string" && isName(name) ? name : "";
}

const nothing: Raw = {};

/** Only the first address counts; the others belong to the same pod, and their meaning is not defined. */
function addressOf(report: Report, value: unknown, at: string, family: Family): Address | null {
  const first = list(report, value, at, "addresses")[0];
  if (first === undefined) {
    addProblem(report, "missing-field", `${at}.addresses`, "is empty; the endpoint is ignored");
    return null;
  }
  const written = text(report, first, at, "addresses[0]");
  const address = parseAddress(written);
  if (address !== null && familyOf(address) === family) return address;
  const wrong = address === null ? "an IP address" : `of the address type of the slice`;
  const message = `is ${quoted(written)}, not ${wrong}; the endpoint is ignored`;
  addProblem(report, "invalid-address", `${at}.addresses[0]`, message);
  return null;
}

const noHints: readonly string[] = [];

/** Sorted and without duplicates. Endpoints with the same hints share one list. */
function hintsOf(report: Report, value: unknown, at: string, field: string): readonly string[] {
  const items = list(report, value, at, field);
  if (items.length === 0) return noHints;
  if (items.length === 1) return onlyHint(report, items[0], at, field);
  const names = new Set(items.map((item, i) => hintOf(report, item, at, field, i)));
  names.delete("");
  const sorted = [...names].sort();
  return sorted.length > mostShared ? sorted : sharedList(sorted.join(" "));
}

/** A name that is known was legal when it came first: paths are only worth making for those that are new. */
function onlyHint(report: Report, item: unknown, at: string, field: string): readonly string[] {
  const name = (item as Raw | null)?.name;
  const known = typeof name === "string" ? sharedLists.get(name) : undefined;
  // A value with blanks, like several names, is not a name.
  return known?.length === 1 ? known : sharedList(hintOf(report, item, at, field, 0));
}

function hintOf(report: Report, item: unknown, at: string, field: string, index: number): string {
  const raw = fields(report, item, at, `${field}[${index}]`);
  return nameOrNothing(report, raw.name, at, `${field}[${index}].name`);
}

/** Lists are kept after their slices are gone, so their number and length are limited. The API server allows eight hints. */
const sharedLists = new Map<string, readonly string[]>();
const sharedAtMost = 10_000;
const mostShared = 8;

/** The list of these names, which hold no blanks. */
function sharedList(joined: string): readonly string[] {
  if (joined === "") return noHints;
  const known = sharedLists.get(joined);
  if (known !== undefined) return known;
  if (sharedLists.size >= sharedAtMost) sharedLists.clear();
  const names = joined.split(" ");
  sharedLists.set(joined, names);
  return names;
}

function triggerTime(report: Report, metadata: Raw): number | null {
  const annotations = fields(report, metadata.annotations, "metadata", "annotations");
  const written = text(report, annotations[triggerAnnotation], "", triggerField);
  if (written === "") return null;
  const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/.test(written)
    ? Date.parse(written)
    : Number.NaN;
  if (!Number.isNaN(time)) return time;
  addProblem(
    report,
    "ignored",
    triggerField,
    `is ${quoted(written)}, not a time; this change is not measured`,
  );
  return null;
}
