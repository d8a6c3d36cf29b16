// Resolves what `whatif` takes away or adds: nodes and zones from the cluster, pods from the API, objects from a file.
import { readFileSync } from "node:fs";
import { closest } from "../config/closest.ts";
import { type WhatIf, whatIf, withoutEndpoints } from "../explain/what-if.ts";
import { overlaid } from "../manifests/overlay.ts";
import type { Reading } from "../manifests/reading.ts";
import { type Address, families, parseAddress } from "../model/address.ts";
import { printProblem } from "../model/problem.ts";
import type { Endpoint, Snapshot } from "../model/snapshot.ts";
import { systemClock } from "../observe/clock.ts";
import type { Place } from "../routing/pools.ts";
import { parseManifests } from "../sources/files/parse.ts";
import { placesOf } from "../sources/node-names.ts";
import { SourceError } from "../sources/source.ts";
import { realWorld } from "../sources/world.ts";
import { getFromApi, type Target } from "./target.ts";
import { few, UsageError, whyUnreadable } from "./usage-error.ts";

export type Question = {
  /** `node/NAME`, `zone/NAME`, `pod/[NAMESPACE/]NAME` or `pod/ADDRESS`. */
  readonly without: readonly string[];
  /** A file with manifests. */
  readonly with?: string | undefined;
};

export async function answerWhatIf(
  target: Cluster,
  now: Snapshot,
  question: Question,
  signal: AbortSignal,
): Promise<WhatIf> {
  const places = await knownPlaces(target, now);
  const added = question.with === undefined ? [] : readingsIn(question.with);
  const gone = await goneOf(target, now, places, question.without, signal);
  return whatIf(now, withoutEndpoints(overlaid(now, added), gone.has), gone.remaining);
}

type Cluster = Pick<Target, "spec" | "node">;

/** What is taken away from a cluster. */
export type Gone = {
  readonly has: (endpoint: Endpoint) => boolean;
  readonly hasNode: (name: string) => boolean;
  /** Nodes that would still exist. */
  readonly remaining: readonly Place[];
};

/** `without`: as in a Question. Throws UsageError for what does not exist. */
export async function goneOf(
  target: Cluster,
  now: Snapshot,
  places: readonly Place[],
  without: readonly string[],
  signal: AbortSignal,
): Promise<Gone> {
  const taken = new Taken(places, now);
  for (const text of without) await taken.add(text, target, signal);
  return {
    has: (endpoint) => taken.has(endpoint),
    hasNode: (name) => taken.nodes.has(name),
    remaining: places.filter(({ nodeName }) => !taken.nodes.has(nodeName)),
  };
}

/** All Nodes of the cluster, in the order of their names; only that of the target where they cannot be read. */
export async function knownPlaces({ spec, node }: Cluster, snapshot: Snapshot): Promise<readonly Place[]> {
  const places = await placesOf(spec, realWorld(systemClock));
  if (places.some(({ nodeName }) => nodeName === node)) return places;
  return [{ nodeName: node, zone: snapshot.node?.zone ?? "" }, ...places];
}

function readingsIn(path: string): readonly Reading[] {
  const parsed = parseManifests(path, textOf(path));
  if (parsed.kind === "broken") throw new UsageError(printProblem(parsed.problem));
  const readings = parsed.objects.map(({ reading }) => reading);
  if (readings.length === 0) throw new UsageError(`${path} has no Service, EndpointSlice or Node`);
  return readings;
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new UsageError(whyUnreadable(path, error));
  }
}

/** Names of nodes that have endpoints. */
function nodesIn(snapshot: Snapshot): ReadonlySet<string> {
  const names = new Set<string>();
  for (const family of families)
    for (const { endpoints } of snapshot[family].ports.values())
      for (const { nodeName } of endpoints) if (nodeName !== "") names.add(nodeName);
  return names;
}

/** Nodes and addresses that are taken away. */
class Taken {
  readonly nodes = new Set<string>();
  readonly #addresses = new Set<Address>();
  readonly #places: readonly Place[];
  readonly #now: Snapshot;

  constructor(places: readonly Place[], now: Snapshot) {
    this.#places = places;
    this.#now = now;
  }

  has({ address, nodeName }: Endpoint): boolean {
    return this.nodes.has(nodeName) || this.#addresses.has(address);
  }

  async add(text: string, target: Cluster, signal: AbortSignal): Promise<void> {
    const [, kind, name = ""] = /^(node|zone|pod)s?\/(.+)$/.exec(text) ?? [];
    if (kind === "node") this.#addNode(name);
    else if (kind === "zone") this.#addZone(name);
    else if (kind === "pod")
      for (const address of await addressesOfPod(name, target, signal)) this.#addresses.add(address);
    else
      throw new UsageError(
        `invalid --without ${JSON.stringify(text)}: must be node/NAME, zone/NAME, pod/NAME or pod/ADDRESS`,
      );
  }

  #addNode(name: string): void {
    const known = this.#places.map(({ nodeName }) => nodeName);
    // A Node that is gone, or cannot be read, may still have endpoints.
    const names = known.includes(name) ? null : new Set([...known, ...nodesIn(this.#now)]);
    if (names !== null && !names.has(name)) throw new UsageError(unknown("node", name, [...names]));
    this.nodes.add(name);
  }

  #addZone(name: string): void {
    const inside = this.#places.filter(({ zone }) => zone === name);
    const zones = [...new Set(this.#places.flatMap(({ zone }) => (zone === "" ? [] : [zone])))];
    if (inside.length === 0) throw new UsageError(unknown("zone", name, zones));
    for (const { nodeName } of inside) this.nodes.add(nodeName);
  }
}

async function addressesOfPod(
  name: string,
  target: Cluster,
  signal: AbortSignal,
): Promise<readonly Address[]> {
  const address = parseAddress(name);
  if (address !== null) return [address];
  const slash = name.indexOf("/");
  const [namespace, short] = slash < 0 ? [null, name] : [name.slice(0, slash), name.slice(slash + 1)];
  const list = await podsOf(target, short, signal);
  const found = list.filter(
    ({ metadata }) => metadata?.name === short && (namespace === null || metadata.namespace === namespace),
  );
  if (found.length === 0)
    throw new UsageError(
      unknown(
        "pod",
        name,
        list.map(({ metadata }) => metadata?.name ?? ""),
      ),
    );
  if (found.length > 1) {
    const names = found.map(({ metadata }) => `pod/${metadata?.namespace}/${short}`).sort();
    throw new UsageError(`${found.length} pods are named ${short}; use ${names.join(" or ")}`);
  }
  return (found[0]!.status?.podIPs ?? []).map(({ ip }) => ip);
}

type Pod = {
  readonly metadata?: { readonly name?: string; readonly namespace?: string };
  readonly status?: { readonly podIPs?: readonly { readonly ip: string }[] };
};

async function podsOf(target: Cluster, name: string, signal: AbortSignal): Promise<readonly Pod[]> {
  const byAddress = "use its address, for example --without=pod/10.0.1.5";
  try {
    const list = await getFromApi(target, "/api/v1/pods", signal);
    if (list !== null) return (list as { items?: Pod[] }).items ?? [];
  } catch (error) {
    if (!(error instanceof SourceError)) throw error;
    throw new UsageError(`cannot look up pod ${name}: ${error.message}; ${byAddress}`);
  }
  throw new UsageError(`cannot resolve pod ${name}: files contain no pod addresses; ${byAddress}`);
}

function unknown(kind: string, name: string, known: readonly string[]): string {
  const near = closest(name, known);
  const names = [...new Set(known)].sort();
  const hint =
    near !== null
      ? `; did you mean ${near}?`
      : names.length > 0
        ? `; ${kind}s in this cluster: ${few(names)}`
        : "";
  return `no ${kind} is named ${JSON.stringify(name)}${hint}`;
}
