// The page of a running daemon shows what the tools print, for generated Services and real packets: history, traffic and flows.
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { HistoryAnswer } from "../../src/inspect/history.ts";
import type { TrafficReport } from "../../src/observe/traffic/report.ts";
import type {
  ArrowsView,
  FlowsView,
  HistoryView,
  ServicesView,
  ServiceView,
  StickyView,
  TrafficView,
} from "../../src/page/json.ts";
import { remoteViews } from "../../src/page/remote-views.ts";
import type { FlowRow } from "../../src/traffic/flow-row.ts";
import type { FlowReport } from "../../src/traffic/report.ts";
import { places } from "../places.ts";
import { type Conversation, openConversation } from "./conversation.ts";
import { type FlowSite, openFlowSite, type SiteService } from "./flow-site.ts";
import { reasonToSkip } from "./netns.ts";
import { senderAt } from "./probe.ts";

const pods = ["10.180.0.2", "10.180.1.1", "10.180.1.2"] as const;
const shapes: readonly Omit<SiteService, "endpoints">[] = [
  { name: "shop/web", clusterIP: "172.30.0.10", port: 80, nodePort: 30_080 },
  { name: "shop/cart", clusterIP: "172.30.0.11", port: 81 },
  { name: "shop/sticky", clusterIP: "172.30.0.12", port: 82, sticky: true },
  { name: "kube-system/dns", protocol: "UDP", clusterIP: "172.30.0.2", port: 53 },
];

/** At least one ready endpoint, and others in any state. */
const arbitraryEndpoints = fc
  .tuple(
    fc.shuffledSubarray([...pods], { minLength: 1 }),
    fc.array(fc.constantFrom("", " draining", " unready"), { minLength: 2, maxLength: 2 }),
  )
  .map(([addresses, states]) =>
    addresses.map((address, i) => `${address}${i === 0 ? "" : states[i - 1]!}`).sort(),
  );

const arbitraryServices = fc
  .tuple(...shapes.map(() => fc.tuple(arbitraryEndpoints, fc.constantFrom(undefined, "Local" as const))))
  .map((all) =>
    all.map(([endpoints, policy], i): SiteService => {
      const isLocal = policy !== undefined && endpoints.includes(pods[0]);
      return { ...shapes[i]!, endpoints, ...(isLocal ? { internalPolicy: policy } : {}) };
    }),
  );

describe.skipIf(reasonToSkip() !== null)("the page of a daemon with traffic", () => {
  let site: FlowSite;
  const open: Conversation[] = [];

  beforeAll(async () => {
    site = await openFlowSite("pg");
    const rounds = fc.sample(arbitraryServices, { seed: 21, numRuns: 6 });
    await site.update(rounds[0]!);
    await site.start("--traffic=endpoints");
    for (const services of rounds) {
      await site.update(services);
      for (const { clusterIP, port, protocol, nodePort } of services) {
        await talk("L1", protocol === "UDP" ? "udp" : "tcp", clusterIP, port);
        if (nodePort !== undefined) await talk("X", "tcp", "192.168.0.2", nodePort);
      }
    }
  });
  afterAll(async () => {
    for (const conversation of open) conversation.close();
    await site?.close();
  });

  /** The connection stays open, also where its endpoint is not any more. */
  async function talk(place: "L1" | "X", protocol: "tcp" | "udp", address: string, port: number) {
    const conversation = openConversation(senderAt(site.world, places[place]), protocol, { address, port });
    open.push(conversation);
    await conversation.talk();
  }
  const view = async <T>(name: string, query: Record<string, string> = {}) => {
    const { status, body } = await remoteViews(site.socket).answer(name, new URLSearchParams(query));
    if (status !== 200) throw new Error(body);
    return JSON.parse(body) as T;
  };
  const printed = async <T>(...argv: string[]) => {
    const { stdout, stderr } = await site.turnout(...argv, "-o", "json");
    if (stdout === "") throw new Error(stderr);
    return JSON.parse(stdout) as T;
  };

  it.each(shapes)("the history of $name", async ({ name }) => {
    const { history, changes } = await printed<HistoryAnswer>("history", `svc/${name}`);
    const shown = await view<HistoryView>("history", { name });
    expect(shown.history).toEqual(history);
    const plain = shown.changes.map(({ text: _text, changes: each, ...entry }) => ({
      ...entry,
      changes: each.map(({ frontends: _frontends, ...change }) => change),
    }));
    expect(plain.reverse()).toEqual(changes);
    expect(changes.length).toBeGreaterThan(1);
  });

  it.each(shapes)("the traffic of $name, on its view and in the table", async ({ name }) => {
    const printedPorts = await ownPorts(name);
    await expect
      .poll(async () => {
        const { traffic } = await view<TrafficView>("traffic", { name });
        return traffic!.ports.map(({ row: _row, ...port }) => port);
      })
      .toEqual(printedPorts);
    const { connections } = printedPorts[0]!.counts!;
    const { rows } = await view<ServicesView>("services", { q: name });
    expect(rows[0]!.traffic?.connections).toBe(connections);
    expect(connections).toBeGreaterThanOrEqual(6);
  });
  const ownPorts = async (name: string) =>
    (await printed<TrafficReport>("top", "--once")).ports.filter(
      (port) => `${port.namespace}/${port.name}` === name,
    );

  it.each(shapes)("the flows of $name", async ({ name, clusterIP, port, protocol }) => {
    // Those of UDP end after a while without packets.
    await talk("L1", protocol === "UDP" ? "udp" : "tcp", clusterIP, port);
    const list = await printed<{ flows: FlowRow[]; matched: number }>("flows", `svc/${name}`);
    const shown = await view<FlowsView>("flows", { name });
    // Seconds pass between the two readings.
    const plain = ({
      pod: _pod,
      timeoutSeconds: _timeoutSeconds,
      ageSeconds: _ageSeconds,
      ...row
    }: FlowRow) => row;
    const rows = shown.flows.map(({ words: _words, finding: _finding, ...row }) =>
      plain({ ...row, pod: null }),
    );
    expect(new Set(rows.map((row) => JSON.stringify(row)))).toEqual(
      new Set(list.flows.map((row) => JSON.stringify(plain(row)))),
    );
    expect([shown.matched, shown.complete]).toEqual([list.matched, true]);
    expect(list.matched).toBeGreaterThan(0);
  });

  it("the sticky clients that nft prints", async () => {
    await talk("L1", "tcp", "172.30.0.12", 82);
    await talk("X", "tcp", "172.30.0.12", 82);
    const { note, endpoints } = await view<StickyView>("sticky", { name: "shop/sticky" });
    expect([note, endpoints.reduce((sum, { count }) => sum + count, 0)]).toEqual([null, 2]);
    for (const { endpoint, set, clients } of endpoints) {
      const listed = site.world.node.run("nft", "list", "set", "ip", "kube-proxy", set);
      const printedClients = [...listed.matchAll(/(\d+\.\d+\.\d+\.\d+) (?:timeout \S+ )?expires/g)].map(
        ([, address]) => address!,
      );
      expect(clients.map(({ address }) => address).sort()).toEqual(printedClients.sort());
      for (const { seconds } of clients) expect([seconds > 10_000, seconds <= 10_800]).toEqual([true, true]);
      expect(pods.map((pod) => `${pod}:8080`)).toContain(endpoint);
    }
    expect((await view<StickyView>("sticky", { name: "shop/web" })).note).toContain("no port");
  });

  it.each(shapes)("the elements that nft prints, beside each arrow of $name", async ({ name }) => {
    const { ports } = await view<ServiceView>("service", { name });
    const ruleset = plainRules(site.world.node.run("nft", "list", "table", "ip", "kube-proxy"));
    let elements = 0;
    for (const { from, to, outcome, chosen } of ports[0]!.paths) {
      const arrows = await view<ArrowsView>("arrows", { from, to });
      expect(outcome).toBe("forward");
      const places = chosen.map((index) => ports[0]!.endpoints[index]!.endpoint);
      expect(arrows.endpoints.map(({ endpoint }) => endpoint).sort()).toEqual(places.sort());
      for (const step of [...arrows.service, ...arrows.endpoints.flatMap(({ steps }) => steps)]) {
        const [, element] = / {2}\{ (.*) \}$/.exec(step) ?? [];
        if (element === undefined) continue;
        elements++;
        expect(ruleset).toContain(element);
      }
      for (const { endpoint, steps } of arrows.endpoints)
        expect(steps.join(" ")).toContain(endpoint.split(":")[0]);
    }
    expect(elements).toBeGreaterThan(0);
  });
  /** Without counters, and on one line. */
  const plainRules = (text: string) =>
    text.replace(/ counter packets \d+ bytes \d+/g, "").replace(/\s+/g, " ");

  it("the classes and reasons of doctor flows, in all Services together", async () => {
    const { classes } = await printed<FlowReport>("doctor", "flows", "--wait=0");
    const counts = Object.fromEntries(
      classes.filter(({ count }) => count > 0).map((each) => [each.class, each.count]),
    );
    const all: Record<string, number> = {};
    const reasons = new Set<string>();
    for (const { name } of shapes) {
      const shown = await view<FlowsView>("flows", { name });
      for (const [each, count] of Object.entries(shown.classes)) all[each] = (all[each] ?? 0) + count;
      for (const { finding } of shown.flows) if (finding !== null) reasons.add(finding.because);
    }
    expect(all).toEqual(counts);
    expect(Object.keys(counts)).toContain("not-eligible");
    for (const { examples } of classes)
      for (const { because } of examples) expect(reasons).toContain(because);
  });
});
