// What the page says is what the tools say: on generated clusters, its JSON is that of `turnout whatif` and `turnout explain`.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, expect, it } from "vitest";
import { explain } from "../src/cli/commands/explain.ts";
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
import type { ExplainView, WhatIfView } from "../src/page/json.ts";
import type { PageNode } from "../src/page/node.ts";
import { NodeViews } from "../src/page/views.ts";
import { arbitraryObjects, clusterFromSeed, type Objects, thisNode } from "./generators.ts";
import { outputOf } from "./support/command-output.ts";

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
        const { picture, mode, ...found } = after;
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
      if (status === 200) expect(value.answer).toEqual(JSON.parse(tool.out));
      else expect(tool.err).toContain(value.error);
      refusals += Number(status === 400);
    }
    const tool = await outputOf(explain, "node", "172.30.0.1:80", ...target, "-o", "json");
    const { value } = await page.ask<ExplainView>("explain", [
      ["from", "node"],
      ["to", "172.30.0.1:80"],
    ]);
    const { picture, ...said } = value;
    expect(said).toEqual(JSON.parse(tool.out));
  }
  expect(refusals).toBeGreaterThanOrEqual(12);
}, 60_000);

const target = [`--source=files:${file}`, `--node=${thisNode}`];

type Query = readonly (readonly string[])[];

/** The page of a cluster, which is in the file as well. */
function openPage(objects: Objects) {
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
    status: () => null,
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
