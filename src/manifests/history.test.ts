import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { arbitraryHistory, type Step, thisNode } from "../../test/generators.ts";
import { families } from "../model/address.ts";
import type { FamilySnapshot, Snapshot } from "../model/snapshot.ts";
import { Cluster } from "./cluster.ts";
import { identify, identity } from "./identity.ts";
import { type Kind, kinds, slim } from "./objects.ts";

// Long on a busy machine, though seconds on a quiet one.
describe("step by step equals from scratch", { timeout: 300_000 }, () => {
  it("on 1,000 histories of objects as an API server sends them", () => {
    fc.assert(
      fc.property(arbitraryHistory({ hostile: false }), (steps) => follow(steps, (_, object) => object)),
      { numRuns: 1000 },
    );
  });

  it("on 500 histories with hostile objects among them, slimmed on the way", () => {
    fc.assert(
      fc.property(arbitraryHistory({ hostile: true }), (steps) => follow(steps, slim)),
      { numRuns: 500 },
    );
  });

  it("on 500 histories whose Services are joined with their slices after every event", () => {
    fc.assert(
      fc.property(arbitraryHistory({ hostile: false }), (steps) =>
        follow(
          steps,
          (_, object) => object,
          (cluster) => void cluster.joinSome(),
        ),
      ),
      { numRuns: 500 },
    );
  });
});

/** Runs a history and holds every Snapshot against one that is built from the objects alone. */
function follow(
  steps: readonly Step[],
  prepare: (kind: Kind, object: unknown) => unknown,
  afterEach: (cluster: Cluster) => void = () => {},
): void {
  const cluster = new Cluster(thisNode);
  const known = new Map<Kind, Map<string, unknown>>(kinds.map((kind) => [kind, new Map()]));
  let last = new Cluster(thisNode).take();
  for (const step of [...steps, { op: "take" } as const]) {
    if (step.op !== "take") {
      applyTo(known, step);
      send(cluster, step, prepare);
      afterEach(cluster);
      continue;
    }
    const pending = cluster.pending;
    const now = cluster.take();
    equal(content(now), content(fromScratch(known)));
    if (!pending) equal(content(now), content(last));
    for (const family of families) checkChanges(last[family], now[family]);
    checkIdentity(last.node, now.node);
    last = now;
  }
}

function send(
  cluster: Cluster,
  step: Exclude<Step, { op: "take" }>,
  prepare: (kind: Kind, o: unknown) => unknown,
): void {
  switch (step.op) {
    case "upsert":
      cluster.upsert(step.kind, prepare(step.kind, step.object));
      break;
    case "remove":
      cluster.remove(step.kind, step.namespace, step.name);
      break;
    case "replace":
      cluster.replace(
        step.kind,
        step.objects.map((object) => prepare(step.kind, object)),
      );
  }
}

function applyTo(known: Map<Kind, Map<string, unknown>>, step: Exclude<Step, { op: "take" }>): void {
  const objects = known.get(step.kind)!;
  if (step.op === "remove") {
    objects.delete(identity(step.kind, step.namespace, step.name).key);
    return;
  }
  if (step.op === "replace") objects.clear();
  for (const object of step.op === "replace" ? step.objects : [step.object]) {
    objects.set(identify(step.kind, object).key, object);
  }
}

/** In another order than that of the history: order must not matter. */
function fromScratch(known: ReadonlyMap<Kind, ReadonlyMap<string, unknown>>): Snapshot {
  const cluster = new Cluster(thisNode);
  for (const [kind, objects] of [...known].reverse()) {
    for (const object of [...objects.values()].reverse()) cluster.upsert(kind, object);
  }
  return cluster.take();
}

/** `changed` names exactly what differs; what does not is the very same object. */
function checkChanges(last: FamilySnapshot, now: FamilySnapshot): void {
  const keys = new Set([...last.ports.keys(), ...now.ports.keys()]);
  const differing = [...keys].filter((key) => !isDeepStrictEqual(last.ports.get(key), now.ports.get(key)));
  equal([...now.changed].sort(), differing.sort());
  for (const key of keys) {
    const [before, after] = [last.ports.get(key), now.ports.get(key)];
    checkIdentity(before, after);
    checkIdentity(before?.endpoints, after?.endpoints);
  }
  checkIdentity(last.serviceCIDRs, now.serviceCIDRs);
}

/** Plain code, as `equal` below: much faster than an assertion of vitest each time. */
function checkIdentity(before: unknown, after: unknown): void {
  if (before !== after && isDeepStrictEqual(before, after)) throw new Error("equal, but not the same object");
}

function content({ ipv4, ipv6, node, problems }: Snapshot): unknown {
  const of = ({ ports, serviceCIDRs }: FamilySnapshot) => ({ ports: new Map(ports.entries()), serviceCIDRs });
  return { ipv4: of(ipv4), ipv6: of(ipv6), node, problems };
}

/** Prints the difference only when there is one. */
function equal(actual: unknown, expected: unknown): void {
  if (!isDeepStrictEqual(actual, expected)) expect(actual).toEqual(expected);
}
