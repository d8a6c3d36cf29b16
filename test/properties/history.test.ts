// Properties of the history: every state of the past is the state that was recorded then, within limits, whatever the clock does.
import { inspect, isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { defaultConfig, nodeRoutes } from "../../src/explain/node-routes.ts";
import { parseTo, type To } from "../../src/explain/question.ts";
import { type BothRoutes, questionOf, type Sender } from "../../src/explain/resolve.ts";
import { trace } from "../../src/explain/trace.ts";
import { snapshotOf, viewFor } from "../../src/explain/view.ts";
import { finished } from "../../src/history/change.ts";
import { bytesOf, HistoryLog, stateAt } from "../../src/history/log.ts";
import { clockStepBetween, recordOf } from "../../src/history/record.ts";
import { entriesOf } from "../../src/history/report.ts";
import { Cluster } from "../../src/manifests/cluster.ts";
import { type Family, families } from "../../src/model/address.ts";
import type { Cause, FamilySnapshot, Snapshot } from "../../src/model/snapshot.ts";
import { modes } from "../../src/modes/index.ts";
import { printTarget } from "../../src/routing/print.ts";
import type { Frontend } from "../../src/routing/routes.ts";
import { arbitraryHistory, type Step, thisNode } from "../generators.ts";

const day = 86_400_000;
const config = defaultConfig("nftables");

describe("500 generated changes", () => {
  const states = recordedStates(500, 1);

  it("are 500 different states, of both families", () => {
    expect(states.length).toBeGreaterThanOrEqual(500);
    for (const family of families)
      expect(states.filter(({ snapshot }) => snapshot[family].ports.size > 0).length).toBeGreaterThan(100);
  });

  it("lead back to every state as it was then", () => {
    const log = logOf(states);
    for (const { at, snapshot } of states) equal(content(known(log, at)), content(snapshot));
  });

  it("explain --at gives the same answer as explain gave then, for every step", () => {
    const log = logOf(states);
    let answers = 0;
    for (const { at, snapshot } of states) {
      const then = known(log, at);
      for (const [from, to] of questions) {
        const answer = explained(then, from, to);
        equal(answer, explained(snapshot, from, to));
        if (typeof answer !== "string") answers++;
      }
    }
    // Not only errors are compared.
    expect(answers).toBeGreaterThan(1000);
  });

  it("blame finds the last change after which packets to an address were handled differently", () => {
    const routes = states.map(({ snapshot }) => nodeRoutes(snapshot, thisNode, config));
    const results = new Map(
      addresses.map((text) => [text, routes.map((each) => resultsAt(each, toOf(text)))]),
    );
    let found = 0;
    for (let end = 20; end <= states.length; end += 20) {
      const log = logOf(states.slice(0, end));
      const here = { settings: (family: Family) => routes[end - 1]![family].settings };
      for (const [text, all] of results) {
        const query = { since: 0, after: 0, limit: 1, to: toOf(text), packets: "only" as const };
        const [entry] = [...entriesOf(log, query, here)].filter((each) => each !== undefined);
        const now = all[end - 1];
        const last = all.slice(0, end).findLastIndex((each) => !isDeepStrictEqual(each, now));
        expect({ end, text, seq: entry?.seq ?? 0 }).toEqual({ end, text, seq: last + 1 });
        if (entry !== undefined) found++;
      }
    }
    expect(found).toBeGreaterThan(100);
  });

  it("survive being written as text and read again", () => {
    const log = logOf(states);
    const copy = new HistoryLog(log.limits);
    const stored = JSON.parse(JSON.stringify(log.stored)) as HistoryLog["stored"];
    copy.begin(states.at(-1)!.snapshot, 0, { stored, beginsAt: log.beginsAt, dropped: null });
    for (const { at, snapshot } of states) equal(content(known(copy, at)), content(snapshot));
  });
});

it("on generated histories with hostile objects, every state is known", () => {
  fc.assert(
    fc.property(arbitraryHistory({ hostile: true }), (steps) => {
      const states = statesOf(steps);
      const log = logOf(states);
      for (const { at, snapshot } of states) equal(content(known(log, at)), content(snapshot));
    }),
    { numRuns: 200 },
  );
});

describe("limits", () => {
  it("hold after every change of a soak, and what was dropped is stated", () => {
    const states = recordedStates(600, 2);
    const limits = { bytes: 60_000, ageMs: 90_000 };
    const log = new HistoryLog(limits);
    log.begin(states[0]!.snapshot, states[0]!.at);
    const reasons = new Set<string>();
    for (const [i, { at, snapshot }] of states.entries()) {
      if (i === 0) continue;
      const recorded = finished(recordOf(states[i - 1]!.snapshot, snapshot, 0))!;
      // Quiet periods in which entries become old, and busy ones in which the size decides.
      const steadyAt = i < 300 ? at : states[299]!.at + (i - 299) * 20_000;
      log.append(recorded, { at, steadyAt }, snapshot);
      const kept = log.stored;
      expect(log.bytes).toBe(kept.reduce((sum, each) => sum + bytesOf(each), 0));
      expect(log.bytes).toBeLessThanOrEqual(limits.bytes);
      expect(kept.every((each) => steadyAt - each.steadyAt <= limits.ageMs)).toBe(true);
      expect(kept.length + (log.dropped?.entries ?? 0)).toBe(i);
      if (log.dropped !== null) reasons.add(log.dropped.reason);
      for (const each of states.slice(0, i + 1).slice(-20)) {
        const then = finished(stateAt(log, each.at));
        expect({ at: each.at, isKnown: !("kind" in then) }).toEqual({
          at: each.at,
          isKnown: each.at >= log.beginsAt!,
        });
        if (!("kind" in then)) equal(content(then), content(each.snapshot));
      }
    }
    expect(reasons).toEqual(new Set(["size", "age"]));
    expect(finished(stateAt(log, states[0]!.at))).toEqual({
      kind: "unknown",
      reason: expect.stringMatching(
        /^history begins at 2026-.*Z; older changes were dropped because of the age limit$/,
      ),
    });
  });

  it("a change larger than all of it leaves the state after it, and says so", () => {
    const states = recordedStates(10, 3);
    const log = new HistoryLog({ bytes: 900, ageMs: day });
    log.begin(new Cluster(thisNode).take(), 5);
    const after = states.find(({ snapshot }) => snapshot.ipv4.ports.size > 0)!.snapshot;
    const undo = { ports: { ipv4: [...after.ipv4.ports.keys()].map((key) => [key, null] as const) } };
    const causes = Array.from({ length: 20 }, () => cause);
    const recorded = { origin: "watch", clockStepMs: 0, causes, moreCauses: 0, undo } as const;
    expect(log.append(recorded, { at: 10, steadyAt: 10 }, after)).toBeNull();
    expect([log.bytes, log.beginsAt, log.dropped]).toEqual([0, 10, { reason: "large", entries: 1 }]);
    equal(content(known(log, 10)), content(after));
    expect(finished(stateAt(log, 9))).toMatchObject({
      reason: expect.stringContaining("larger than the size limit"),
    });
  });
});

it("a clock that is set back or forward keeps changes in order, and every state can be reached", () => {
  const states = recordedStates(40, 4);
  const log = new HistoryLog({ bytes: 8_000_000, ageMs: day });
  log.begin(states[0]!.snapshot, 0);
  let last = { at: 0, steadyAt: 0 };
  for (const [i, { snapshot }] of states.entries()) {
    if (i === 0) continue;
    const steadyAt = i * 1000;
    const now = { at: steadyAt + (i < 10 ? 0 : i < 20 ? -5_000 : 3_600_000), steadyAt };
    const step = clockStepBetween(last, now);
    expect(step).toBe(i === 10 ? -5_000 : i === 20 ? 3_605_000 : 0);
    log.append(finished(recordOf(states[i - 1]!.snapshot, snapshot, step))!, now, snapshot);
    last = now;
  }
  expect(log.stored.map(({ seq }) => seq)).toEqual(log.stored.map((_, i) => i + 1));
  // The last state that the clock had put at or before the moment.
  equal(content(known(log, 9_500)), content(states[14]!.snapshot));
  equal(content(known(log, 3_600_000 + 25_000)), content(states[25]!.snapshot));
  equal(content(known(log, 100_000)), content(states[19]!.snapshot));
});

type State = { readonly at: number; readonly snapshot: Snapshot };

const cause: Cause = {
  kind: "Service",
  namespace: "shop",
  name: "web",
  event: "added",
  resourceVersion: "1",
  receivedAt: 1,
};

const start = Date.UTC(2026, 0, 2, 3, 4, 5);

/** At least so many Snapshots that differ from the one before, a second apart. */
function recordedStates(atLeast: number, seed: number): State[] {
  const steps = fc.sample(arbitraryHistory({ hostile: false }), { seed, numRuns: atLeast }).flat();
  const states = statesOf(steps.flatMap((step) => [step, { op: "take" } as const]));
  return states.slice(0, atLeast + 1);
}

function statesOf(steps: readonly Step[]): State[] {
  const cluster = new Cluster(thisNode);
  const states: State[] = [{ at: start, snapshot: cluster.take() }];
  for (const step of [...steps, { op: "take" } as const]) {
    if (step.op === "upsert") cluster.upsert(step.kind, step.object);
    else if (step.op === "remove") cluster.remove(step.kind, step.namespace, step.name);
    else if (step.op === "replace") cluster.replace(step.kind, step.objects);
    else {
      const before = states.at(-1)!;
      const snapshot = cluster.take();
      if (!isDeepStrictEqual(content(snapshot), content(before.snapshot)))
        states.push({ at: before.at + 1000, snapshot });
    }
  }
  return states;
}

function logOf(states: readonly State[]): HistoryLog {
  const log = new HistoryLog({ bytes: 1e9, ageMs: 1e12 });
  log.begin(states[0]!.snapshot, states[0]!.at);
  for (const [i, { at, snapshot }] of states.entries()) {
    if (i === 0) continue;
    const recorded = finished(recordOf(states[i - 1]!.snapshot, snapshot, 0))!;
    log.append(recorded, { at, steadyAt: at }, snapshot);
  }
  return log;
}

function known(log: HistoryLog, at: number): Snapshot {
  const then = finished(stateAt(log, at));
  if ("kind" in then) throw new Error(then.reason);
  return then;
}

const addresses = [
  ...[
    "172.30.0.1",
    "172.30.0.2",
    "172.30.0.3",
    "203.0.113.1",
    "203.0.113.2",
    "[fd00:30::1]",
    "[2001:db8::1]",
  ].flatMap((address) => [`${address}:80`, `${address}:443/udp`, `${address}:65535/sctp`]),
  "nodeport:30080",
  "nodeport:30053/udp",
];

/** What happens at an address and port, in both families, without what holds for the whole node. */
function resultsAt(routes: BothRoutes, to: To): unknown {
  return families.map((family) =>
    [...routes[family].ports.values()]
      .flatMap((each) => each.routes)
      .filter(({ frontend }) => isFrontendOf(frontend, to))
      .map(({ from, allowed }) => [
        printTarget(from.pod),
        printTarget(from.node),
        printTarget(from.outside),
        allowed,
      ]),
  );
}

function isFrontendOf(frontend: Frontend, to: To): boolean {
  if (to.kind === "service" || frontend.protocol !== to.protocol || frontend.port !== to.port) return false;
  return frontend.kind === "nodePort"
    ? to.kind === "nodePort"
    : to.kind === "address" && frontend.address === to.address;
}

const questions: readonly (readonly [Sender, To])[] = [
  [{ kind: "pod", address: "10.0.1.2" }, toOf("172.30.0.1:80")],
  [{ kind: "outside", address: "203.0.113.9", anybody: true }, toOf("nodeport:30080")],
  [{ kind: "outside", address: "203.0.113.9" }, toOf("203.0.113.1:443")],
  [{ kind: "node" }, toOf("svc/shop/web:http")],
  [{ kind: "pod", address: "fd00:10::1" }, toOf("[fd00:30::2]:53/udp")],
];

function toOf(text: string): To {
  const to = parseTo(text);
  if (!to.ok) throw new Error(to.reason);
  return to.value;
}

/** As `explain` answers with a daemon: of a part of the Snapshot. */
function explained(snapshot: Snapshot, from: Sender, to: To): unknown {
  const part = snapshotOf([viewFor(snapshot, ["192.168.0.2"], from, to)]);
  const routes = nodeRoutes(part, thisNode, config);
  const question = questionOf(from, to, routes);
  if (!question.ok) return question.reason;
  return trace(modes.nftables, routes[question.value.family], question.value.packet);
}

function content({ ipv4, ipv6, node }: Snapshot): unknown {
  const of = ({ ports, serviceCIDRs }: FamilySnapshot) => ({
    ports: new Map([...ports.entries()].sort(([a], [b]) => (a < b ? -1 : 1))),
    size: ports.size,
    serviceCIDRs,
  });
  return { ipv4: of(ipv4), ipv6: of(ipv6), node };
}

function equal(actual: unknown, expected: unknown): void {
  // Far quicker than asking vitest each time.
  if (isDeepStrictEqual(actual, expected)) return;
  throw new Error(`${inspect(actual, { depth: 9 })} is not ${inspect(expected, { depth: 9 })}`);
}
