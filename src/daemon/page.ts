// The page of the daemon: what it shows of this node, loaded at the first use, and its server with `--page-address`.
import type { BothRoutes } from "../explain/resolve.ts";
import type { Family } from "../model/address.ts";
import { keyed } from "../model/keyed.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { systemClock } from "../observe/clock.ts";
import type { Log } from "../observe/log/log.ts";
import { keepServing } from "../observe/servers/keep-serving.ts";
import { type PageViews, viewAnswer } from "../observe/status/page-views.ts";
import type { RememberedSync, Status } from "../observe/status/status.ts";
import { parsePageAddress } from "../page/address.ts";
import type { NodeObserver, PageNode } from "../page/node.ts";
import type { NodeRecords } from "../page/records/records.ts";
import type { OpenPage } from "../page/server.ts";
import { type Routes, route } from "../routing/routes.ts";
import type { FinishedSync } from "../sync/flows.ts";
import type { LoopObserver } from "../sync/loop.ts";
import type { DaemonOptions } from "./daemon.ts";
import { kernelRecords } from "./page-records.ts";
import type { Part } from "./part.ts";
import type { OpenNode } from "./start/start.ts";

type StatusParts = { readonly status: () => Status; readonly lastSync: () => RememberedSync | null };

export type DaemonPage = Part & {
  readonly observer: Partial<LoopObserver>;
  readonly views: () => Promise<PageViews>;
};

/** Nothing of src/page/ is loaded before the first request, or without `--page-address`. */
export function openDaemonPage(
  options: Pick<DaemonOptions, "pageAddress" | "version">,
  node: OpenNode,
  { status, lastSync }: StatusParts,
  records: Pick<NodeRecords, "history" | "traffic">,
  log: Log,
): DaemonPage {
  const state = keepState(node, lastSync);
  let loaded: Promise<PageViews & { close(): void }> | null = null;
  let served: OpenPage | null = null;
  const views = () => {
    loaded ??= load(pageNode(options, node, status, state), { ...records, ...kernelRecords(node) });
    return loaded;
  };
  return {
    observer: state.observer,
    // Only root can read the status socket, so it may have the token.
    views: async () => {
      const { answer, events } = await views();
      return {
        events,
        answer: async (view, query) =>
          view === "address" ? viewAnswer(200, { url: served?.url ?? null }) : answer(view, query),
      };
    },
    async run(signal) {
      if (!options.pageAddress) return null;
      const { pageAddress } = options;
      const kept = keepServing(
        {
          name: "page",
          address: pageAddress,
          async open() {
            const { openPage } = await import("../page/server.ts");
            const { pageFiles } = await import("../page/embedded.ts");
            const page = {
              files: pageFiles(),
              nodes: new Map([[node.nodeName, await views()]]),
              flags: "",
              act: null,
            };
            served = await openPage(page, parsePageAddress(pageAddress)!);
            const { port, close } = served;
            return { port, close, open: () => 0 };
          },
          onHardFail: null,
        },
        systemClock,
        log,
      );
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      await kept.close();
      return null;
    },
    async close() {
      (await loaded)?.close();
    },
  };
}

async function load(node: PageNode, records: NodeRecords) {
  const { NodeViews } = await import("../page/views.ts");
  return new NodeViews(node, systemClock, records);
}

type State = {
  readonly observer: Partial<LoopObserver>;
  readonly observers: Set<NodeObserver>;
  readonly snapshot: () => Snapshot | null;
  readonly routes: () => BothRoutes | null;
};

/** Two references per family while no browser uses the page. */
function keepState({ families: served, settings }: OpenNode, lastSync: StatusParts["lastSync"]): State {
  const observers = new Set<NodeObserver>();
  const current = new Map<Family, FinishedSync["routes"]>();
  let snapshot: Snapshot | null = null;
  const routesOf = (family: Family): Routes =>
    current.get(family)?.() ?? route(null, emptyFamily, settings.resolved.settings[family]);
  return {
    observers,
    snapshot: () => snapshot,
    routes: () =>
      served.every((family) => current.has(family))
        ? { ipv4: routesOf("ipv4"), ipv6: routesOf("ipv6") }
        : null,
    observer: {
      arrived(arrived) {
        snapshot = arrived;
      },
      // The observer of the status comes first: its last Sync is this one.
      synced(record) {
        for (const observer of observers) observer.synced(lastSync() ?? record);
      },
      afterSync({ record: { family }, changed, routes }) {
        current.set(family, routes);
        for (const observer of observers) observer.changed(family, changed);
      },
    },
  };
}

const emptyFamily: Snapshot["ipv4"] = { ports: keyed(), changed: new Set(), serviceCIDRs: [] };

function pageNode(
  { version }: Pick<DaemonOptions, "version">,
  { nodeName, mode, settings, spec, drivers }: OpenNode,
  status: () => Status,
  state: State,
): PageNode {
  return {
    name: nodeName,
    version,
    spec,
    mode,
    config: () => settings.config,
    status,
    snapshot: state.snapshot,
    routes: state.routes,
    problems: () => status().problems,
    async kernel(routes, packet) {
      const { readKernelView } = await import("../inspect/kernel-view.ts");
      const kernel = {
        at: {},
        mode,
        config: settings.config,
        relays: async () =>
          Object.fromEntries([...drivers].map(([family, driver]) => [family, driver.report().relays?.()])),
      };
      return readKernelView(kernel, routes, packet, AbortSignal.timeout(kernelMs));
    },
    observe(observer) {
      state.observers.add(observer);
      return () => state.observers.delete(observer);
    },
  };
}

/** Reading the sets of a large cluster takes a second. */
const kernelMs = 10_000;
