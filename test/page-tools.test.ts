// The page agrees with the tools: on generated clusters, its JSON is that of `turnout whatif`, `explain` and `status`.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, expect, it } from "vitest";
import { explain } from "../src/cli/commands/explain.ts";
import { status as statusCommand } from "../src/cli/commands/status.ts";
import { whatif } from "../src/cli/commands/whatif.ts";
import { defaultConfig, nodeRoutes } from "../src/explain/node-routes.ts";
import { trace } from "../src/explain/trace.ts";
import { withoutEndpoints } from "../src/explain/what-if.ts";
import { answerWhatIf, goneOf, knownPlaces } from "../src/inspect/what-if.ts";
import { Cluster } from "../src/manifests/cluster.ts";
import { type Kind, kinds } from "../src/manifests/objects.ts";
import { families, familyOf, joinHostPort } from "../src/model/address.ts";
import type { Endpoint, ServicePort, Snapshot } from "../src/model/snapshot.ts";
import { modes } from "../src/modes/index.ts";
import { systemClock } from "../src/observe/clock.ts";
import { serveStatus } from "../src/observe/status/socket.ts";
import type { Status } from "../src/observe/status/status.ts";
import type { ExplainView, NodeView, WhatIfView } from "../src/page/json.ts";
import type { PageNode } from "../src/page/node.ts";
import { NodeViews } from "../src/page/views.ts";
import { arbitraryObjects, clusterFromSeed, type Objects, thisNode } from "./generators.ts";
import { outputOf } from "./support/command-output.ts";
import { plainRecord } from "./support/sync-record.ts";

const folder = mkdtempSync(join(tmpdir(), "turnout-page-tools-"));
const file = join(folder, "cluster.json");
const config = defaultConfig("nftables");
const spec = { kind: "files", paths: [file] } as const;
const cluster = { spec, node: thisNode };
afterAll(() => rmSync(folder, { recursive: true }));

it("whatif: answers for the cluster and for one packet, before and after", async () => {
  const seen = { lost: 0, packets: 0, differing: 0 };
  await fc.assert(
    fc.asyncProperty(
      arbitraryObjects({ hostile: false }),
      fc.array(fc.nat(), { minLength: 1, maxLength: 2 }),
      fc.constantFrom("node", "outside", "pod:10.0.1.2", "pod:10.0.1.77"),
      fc.nat(),
      async (objects, picks, from, at) => {
        const page = openPage(objects);
        const ports = portsOf(page.snapshot).filter(({ endpoints }) => endpoints.length > 0);
        if (ports.length === 0) return;
        const { clusterIP, port, protocol, family, endpoints } = ports[at % ports.length]!;
        const without = picks.map((pick) => oneOf(endpoints, pick));
        const to = `${joinHostPort(clusterIP, port)}/${protocol}`;
        const sender = family === "ipv4" || !from.startsWith("pod") ? from : "pod:fd00:10::77";
        const query = [...without.map((text) => ["without", text]), ["from", sender], ["to", to]];
        const { value, status } = await page.ask<WhatIfView>("whatif", query);
        const signal = AbortSignal.timeout(5_000);
        expect([status, value.moreChanges]).toEqual([200, 0]);
        expect(value.answer).toEqual(plain(await answerWhatIf(cluster, page.snapshot, { without }, signal)));
        const { before, after } = value.packet!;
        const now = await page.ask<ExplainView>("explain", query.slice(-2));
        expect(before).toEqual(now.value);
        expect(after === null).toBe(without.includes(`node/${thisNode}`));
        if (value.answer.withoutEndpoint.length > 0) seen.lost++;
        if (after === null) return;
        const places = await knownPlaces(cluster, page.snapshot);
        const gone = await goneOf(cluster, page.snapshot, places, without, signal);
        const routes = nodeRoutes(withoutEndpoints(page.snapshot, gone.has), thisNode, config);
        const { picture: _picture, mode: _mode, ...found } = after;
        expect(found).toEqual(
          plain(trace(modes.nftables, routes[familyOf(before.packet.to.address)], before.packet)),
        );
        expectDrawn(after, before);
        seen.packets++;
        if (JSON.stringify(found.candidates) !== JSON.stringify(before.candidates)) seen.differing++;
      },
    ),
    { numRuns: 500 },
  );
  expect(seen.packets).toBeGreaterThan(40);
  expect(seen.differing).toBeGreaterThan(10);
  expect(seen.lost).toBeGreaterThan(10);
}, 60_000);

it("is what the commands print, also where they refuse to answer", async () => {
  let refusals = 0;
  for (let seed = 1; seed <= 6; seed++) {
    const page = openPage(clusterFromSeed(seed));
    for (const without of ["node/node-b", "zone/z1", "pod/10.0.1.2", "pod/web-1", "cluster"]) {
      const tool = await outputOf(whatif, `--without=${without}`, ...target, "-o", "json");
      const { status, value } = await page.ask<WhatIfView>("whatif", [["without", without]]);
      expect(status).toBe(tool.code === 1 ? 400 : 200);
      expect(status === 200 ? value.answer : null).toEqual(tool.code === 1 ? null : JSON.parse(tool.out));
      expect(tool.err).toContain(value.error ?? "");
      refusals += Number(status === 400);
    }
    const tool = await outputOf(explain, "node", "172.30.0.1:80", ...target, "-o", "json");
    const { value } = await page.ask<ExplainView>("explain", [
      ["from", "node"],
      ["to", "172.30.0.1:80"],
    ]);
    const { picture: _picture, ...said } = value;
    expect(said).toEqual(JSON.parse(tool.out));
  }
  expect(refusals).toBeGreaterThanOrEqual(12);
}, 60_000);

const target = [`--source=files:${file}`, `--node=${thisNode}`];

type Query = readonly (readonly string[])[];

/** The page of a cluster, which is in the file as well. */
function openPage(objects: Objects, status: () => Status | null = () => null) {
  writeFileSync(file, textOf(objects));
  const known = new Cluster(thisNode);
  for (const kind of kinds) known.replace(kind, objects[kind]);
  const snapshot = known.take();
  const routes = nodeRoutes(snapshot, thisNode, config);
  const node: PageNode = {
    name: thisNode,
    version: "v1.37.1",
    spec,
    mode: modes.nftables,
    config: () => config,
    status,
    snapshot: () => snapshot,
    routes: () => routes,
    problems: () => snapshot.problems,
    kernel: null,
    observe: () => () => {},
  };
  const views = new NodeViews(node, systemClock);
  const ask = async <T>(view: string, query: Query) => {
    const { status, body } = await views.answer(view, new URLSearchParams(query as string[][]));
    views.close();
    return { status, value: JSON.parse(body) as T & { error: string } };
  };
  return { snapshot, ask };
}

const versions: Readonly<Record<Kind, string>> = {
  Service: "v1",
  EndpointSlice: "discovery.k8s.io/v1",
  Node: "v1",
  ServiceCIDR: "networking.k8s.io/v1",
};

function textOf(objects: Objects): string {
  // Files report a name that repeats; here the last one counts, as in the Cluster.
  const last = new Map<string, unknown>();
  for (const kind of kinds)
    for (const object of objects[kind] as { metadata: { namespace?: string; name: string } }[])
      last.set(`${kind} ${object.metadata.namespace} ${object.metadata.name}`, {
        apiVersion: versions[kind],
        kind,
        ...object,
      });
  return JSON.stringify({ apiVersion: "v1", kind: "List", items: [...last.values()] });
}

function portsOf(snapshot: Snapshot): readonly ServicePort[] {
  return families.flatMap((family) => [...snapshot[family].ports.values()]);
}

/** The pod or the node of an endpoint. */
function oneOf(endpoints: readonly Endpoint[], pick: number): string {
  const names = endpoints.flatMap(({ address, nodeName }) => [
    `pod/${address}`,
    ...(nodeName === "" ? [] : [`node/${nodeName}`]),
  ]);
  return names[pick % names.length]!;
}

/** As JSON keeps it. */
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

/** The picture has the endpoints of before; those chosen are the candidates, those gone are left out. */
function expectDrawn({ picture, candidates }: ExplainView, { picture: old }: ExplainView): void {
  expect(picture?.endpoints).toEqual(old?.endpoints);
  if (picture === null) return;
  const [path] = picture.paths;
  const name = (index: number) => picture.endpoints[index]!.endpoint;
  expect(path!.chosen.map(name)).toEqual(candidates.map(({ endpoint }) => endpoint));
  const isGone = new Set(
    path!.leftOut.filter(({ reason }) => reason === "gone").map((each) => each.endpoint),
  );
  for (const chosen of path!.chosen) expect(isGone.has(chosen)).toBe(false);
  expect(picture.paths).toHaveLength(1);
}

it("node: is what turnout status prints of the daemon", async () => {
  const socket = join(folder, "status.sock");
  let current: Status | null = null;
  const none = { "/relays": () => ({}), "/view": () => null, "/traffic": () => null };
  const answers = { ...none, "/cluster": () => [null], "/history": () => [], "/": () => current! };
  const close = await serveStatus(socket, () => answers);
  const page = openPage(clusterFromSeed(1), () => current);
  try {
    await fc.assert(
      fc.asyncProperty(arbitraryStatus, async (status) => {
        current = status;
        const tool = await outputOf(statusCommand, `--source=daemon:${socket}`, "-o", "json");
        const printed = JSON.parse(tool.out) as Status;
        const { value } = await page.ask<NodeView>("node", []);
        const { problems, ...said } = value.status!;
        const { problems: all, ...rest } = printed;
        expect(said).toEqual(rest);
        expect(problems).toEqual(all.slice(0, 200));
        expect(value.moreProblems + value.problems.length).toBe(all.length);
        const { head } = value;
        expect([head.problems, head.latency]).toEqual([all.length, printed.latency]);
        expect(head.state).toBe(
          printed.waits !== null ? "starting" : printed.health!.healthy ? "healthy" : "unhealthy",
        );
        const reasons = printed.waits === null ? printed.health!.reasons.map(({ message }) => message) : [];
        for (const [i, reason] of reasons.entries()) expect(head.reasons[i]).toContain(reason);
        expect(
          value.syncs.map(({ at, operations, trigger, objects }) => [at, operations, trigger, objects]),
        ).toEqual(
          printed.syncs
            .map(({ finishedAt, operations, trigger, objects = [] }) => [
              finishedAt,
              operations,
              trigger,
              objects,
            ])
            .reverse(),
        );
        expect(head.lastSync?.at).toBe(printed.syncs[0]?.finishedAt);
        expect(value.configuration).toBe(printed.configuration);
      }),
      { numRuns: 60 },
    );
  } finally {
    close();
  }
}, 60_000);

const text = fc.string({ unit: "grapheme", maxLength: 20 });
const moment = fc.nat({ max: 2_000_000_000_000 });
const arbitraryProblem = fc.record({
  kind: fc.constantFrom("refused" as const, "invalid-address" as const),
  object: text,
  field: text,
  message: text,
});

const arbitraryStatus: fc.Arbitrary<Status> = fc
  .record({
    healthy: fc.boolean(),
    reasons: fc.array(text, { maxLength: 2 }),
    waits: fc.option(fc.record({ for: text, since: moment, until: fc.constant(null) }), { freq: 5 }),
    configuration: text,
    syncs: fc.array(
      fc.record({
        family: fc.constantFrom("ipv4" as const, "ipv6" as const),
        trigger: fc.constantFrom("first" as const, "change" as const, "drift" as const),
        startedAt: moment,
        finishedAt: moment,
        operations: fc.nat(),
        objects: fc.option(fc.array(text, { minLength: 1, maxLength: 3 }), { nil: undefined }),
        outcome: fc.constantFrom(
          { kind: "ok" as const, refused: [] },
          { kind: "failed" as const, message: "EBUSY" },
        ),
      }),
      { maxLength: 20 },
    ),
    problems: fc.array(arbitraryProblem, { maxLength: 250, size: "max" }),
    latency: fc.option(fc.record({ p50: fc.nat(), p99: fc.nat(), samples: fc.nat() })),
    used: fc.nat(),
    note: text,
    at: moment,
  })
  .map(({ healthy, reasons, waits, syncs, problems, latency, used, note, at, configuration }) => ({
    pid: 1,
    version: "v1.37.1",
    node: thisNode,
    mode: "nftables",
    families: ["ipv4", "ipv6"] as const,
    source: "api",
    ownership: "plain" as const,
    startedAt: 1,
    health: {
      healthy: healthy || reasons.length === 0,
      reasons: reasons.map((message) => ({ kind: "sync" as never, family: null, since: at, message })),
      watchAges: {},
    },
    waits,
    configuration,
    syncs: syncs.map((sync) => ({ ...plainRecord, ...sync })) as Status["syncs"],
    lastSuccess: {},
    problems,
    drift: [],
    watches: {},
    latency,
    limits: [{ name: "conntrack" as const, unit: "entries" as const, used, limit: used + 1 }],
    events: [
      {
        reason: "Starting" as const,
        type: "Normal" as const,
        regarding: { kind: "Node" as const, name: thisNode },
        note,
        at,
        count: 1,
        lastAt: at,
        delivery: "sent" as const,
      },
    ],
  }));
