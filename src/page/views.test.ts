// The views of a node: current while they are used, nothing is kept otherwise, and long work yields.
import { once } from "node:events";
import { setImmediate as nextTurn } from "node:timers/promises";
import { afterEach, expect, it } from "vitest";
import { manualClock } from "../../test/support/manual-clock.ts";
import { endpoint, ipv6Settings, routed, servicePort } from "../../test/support/routed.ts";
import { defaultConfig } from "../explain/node-routes.ts";
import { printTrace } from "../explain/print.ts";
import { trace } from "../explain/trace.ts";
import { noCauses, noTriggers, type Snapshot } from "../model/snapshot.ts";
import { modes } from "../modes/index.ts";
import type { Routes } from "../routing/routes.ts";
import type { ServicesView, ServiceView, Update, WhatIfView } from "./json.ts";
import type { NodeObserver, PageNode } from "./node.ts";
import { NodeViews } from "./views.ts";

const web = (count: number) =>
  servicePort("shop/web", {
    clusterIP: "172.30.0.10",
    endpoints: Array.from({ length: count }, (_, i) => endpoint(`10.180.0.${i + 1}:8080`)),
  });

/** A node whose cluster a test changes. */
function testNode(first: Routes | null) {
  const observers = new Set<NodeObserver>();
  let current = first;
  const none = routed([], ipv6Settings);
  const node: PageNode = {
    name: "node-a",
    version: "v1.37.1+turnout.0.1.0",
    spec: { kind: "files", paths: ["shop"] },
    mode: modes.nftables,
    config: () => defaultConfig("nftables"),
    status: () => null,
    snapshot: () => (current === null ? null : snapshotOf(current)),
    routes: () => (current === null ? null : { ipv4: current, ipv6: none }),
    problems: () => noProblems,
    kernel: null,
    observe(observer) {
      observers.add(observer);
      return () => observers.delete(observer);
    },
  };
  return {
    node,
    observers,
    change: (next: Routes) => {
      current = next;
      for (const observer of observers) observer.changed("ipv4", next.changed);
    },
  };
}

const noProblems: readonly never[] = [];

function snapshotOf({ ports, serviceCIDRs }: Routes): Snapshot {
  const entries = [...ports.entries()].map(([key, { port }]) => [key, port] as const);
  const family = { ports: new Map(entries) as never, changed: new Set<string>(), serviceCIDRs };
  return {
    ipv4: family,
    ipv6: { ...family, ports: new Map() as never },
    node: null,
    triggeredAt: noTriggers,
    causes: noCauses,
    problems: [],
  };
}

let open: NodeViews[] = [];
afterEach(() => {
  for (const views of open) views.close();
  open = [];
});

function viewsOf(node: PageNode, clock = manualClock()) {
  const views = new NodeViews(node, clock);
  open.push(views);
  const get = async <T>(view: string, query = "") => {
    const { status, body } = await views.answer(view, new URLSearchParams(query));
    return { status, value: JSON.parse(body) as T & { error?: string } };
  };
  return { views, clock, get };
}

it("answers for the Services of the node, and names what does not exist", async () => {
  const { get } = viewsOf(testNode(routed([web(3)])).node);
  const services = await get<ServicesView>("services");
  expect(services.value.rows.map(({ service, endpoints }) => [service, endpoints.ready])).toEqual([
    ["shop/web", 3],
  ]);
  const service = await get<ServiceView>("service", "name=shop/web");
  expect(service.value.ports[0]?.endpoints).toHaveLength(3);
  expect((await get("service", "name=shop/nothing")).status).toBe(404);
  expect((await get("nothing")).status).toBe(404);
  expect((await get("services", "level=fine")).status).toBe(400);
});

it("explains a packet as turnout explain does, with its reasons for what cannot be answered", async () => {
  const routes = routed([web(2)]);
  const { get } = viewsOf(testNode(routes).node);
  const { value } = await get<ReturnType<typeof trace>>("explain", "from=node&to=svc/shop/web");
  const expected = trace(modes.nftables, routes, value.packet);
  expect(printTrace(value)).toBe(printTrace(expected));
  expect(value).toMatchObject(JSON.parse(JSON.stringify(expected)) as object);
  expect(await get("explain", "from=node&to=svc/shop/webb")).toMatchObject({
    status: 400,
    value: { error: expect.stringContaining("did you mean svc/shop/web?") },
  });
  for (const query of [
    "",
    "from=node",
    "from=%00&to=x",
    "from=web-1&to=svc/shop/web",
    "from=node&to=svc/shop/web&live=1",
  ])
    expect((await get("explain", query)).status).toBe(400);
});

it("sends the latest state after a change, at most five times a second", async () => {
  const { node, change } = testNode(routed([web(1)]));
  const { views, clock, get } = viewsOf(node);
  const events = views.events();
  const received: Update[] = [];
  events.on("data", (some: Buffer) => {
    const text = some.toString();
    if (text.startsWith("data: ")) received.push(JSON.parse(text.slice(6)) as Update);
  });
  await expect.poll(() => received).toHaveLength(1);
  let routes = node.routes()!.ipv4;
  for (let i = 2; i <= 20; i++) {
    routes = routed([web(i)], routes.settings, routes);
    change(routes);
  }
  clock.advance(199);
  await nextTurn();
  expect(received).toHaveLength(1);
  clock.advance(1);
  await expect.poll(() => received).toHaveLength(2);
  expect(received[1]!.revision).toBe(received[0]!.revision + 1);
  expect(received[1]!.head.endpoints).toBe(20);
  expect((await get<ServicesView>("services")).value.revision).toBe(received[1]!.revision);
  clock.advance(60_000);
  await nextTurn();
  expect(received).toHaveLength(2);
});

it("follows the node only while it is used", async () => {
  const { node, observers } = testNode(routed([web(1)]));
  const { views, clock, get } = viewsOf(node);
  expect(observers.size).toBe(0);
  await get("services");
  expect(observers.size).toBe(1);
  clock.advance(59_000);
  expect(observers.size).toBe(1);
  const events = views.events();
  clock.advance(600_000);
  expect(observers.size).toBe(1);
  events.destroy();
  await once(events, "close");
  clock.advance(60_000);
  expect([observers.size, clock.pending()]).toEqual([0, 0]);
  expect((await get<ServicesView>("services")).value.total).toBe(1);
});

it("has no Services before the first Sync, and all after it", async () => {
  const { node, change } = testNode(null);
  const { get } = viewsOf(node);
  expect((await get<ServicesView>("services")).value.total).toBe(0);
  expect((await get("explain", "from=node&to=svc/shop/web")).status).toBe(503);
  change(routed([web(1)]));
  expect((await get<ServicesView>("services")).value.total).toBe(1);
});

const many = (count: number) =>
  Array.from({ length: count }, (_, i) =>
    servicePort(`shop/s${i}`, {
      clusterIP: `172.30.${i >> 8}.${i & 255}`,
      endpoints: [endpoint("10.180.0.1:80"), endpoint("10.180.0.2:80")],
    }),
  );

/** How many turns of the event loop other work gets meanwhile. */
async function turnsDuring<T>(work: Promise<T>): Promise<readonly [T, number]> {
  let turns = 0;
  let done = false;
  const answer = work.finally(() => {
    done = true;
  });
  while (!done) {
    turns++;
    await nextTurn();
  }
  return [await answer, turns];
}

it("yields to other work while it makes a large table", async () => {
  const { get } = viewsOf(testNode(routed(many(3000))).node);
  const [{ value }, turns] = await turnsDuring(get<ServicesView>("services"));
  expect(value.total).toBe(3000);
  expect(turns).toBeGreaterThan(20);
});

it("yields to other work while it compares what would be gone, and sends the first changes", async () => {
  const { get } = viewsOf(testNode(routed(many(3000))).node);
  await get("services");
  const [{ value }, turns] = await turnsDuring(get<WhatIfView>("whatif", "without=pod/10.180.0.1"));
  expect(value.answer.changes.length + value.moreChanges).toBe(3000);
  expect(value.answer.changes.flatMap(({ from }) => from[0]!.shares).length).toBeLessThanOrEqual(2000);
  expect(turns).toBeGreaterThan(100);
});
