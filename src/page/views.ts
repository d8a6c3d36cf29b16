// The views of one node: keeps the table of Services up to date while it is used, and answers requests about it.
import { writeConfig } from "../config/file/write.ts";
import { type Family, families } from "../model/address.ts";
import type { Clock } from "../model/clock.ts";
import { type Problem, printProblem } from "../model/problem.ts";
import type { PortKey } from "../model/snapshot.ts";
import { inTurns, nextTurn } from "../model/steps.ts";
import { type PageViews, type ViewAnswer, viewAnswer, viewError } from "../observe/status/page-views.ts";
import { headOf } from "./head.ts";
import type { Head, NodeView, PortJson, ServicesView, ServiceView, ServiceWindow, Update } from "./json.ts";
import { LatestEvents } from "./latest-events.ts";
import type { PageNode } from "./node.ts";
import { tryPacket } from "./packet/try-packet.ts";
import { placesView, whatIfView } from "./packet/what-if.ts";
import { pictureOf } from "./picture.ts";
import { arrowsView } from "./records/arrows.ts";
import { changesView } from "./records/changes.ts";
import { FlowsReader } from "./records/flows.ts";
import type { NodeRecords } from "./records/records.ts";
import { StickyReader } from "./records/sticky.ts";
import { rowTraffic, stateOf, type TrafficRecords, TrafficSampler, trafficView } from "./records/traffic.ts";
import { compare } from "./row.ts";
import { filterOf, windowOf } from "./service-filter.ts";
import { SyncHistory } from "./sync-history.ts";
import { ServiceTable } from "./table.ts";

/** Shortest time between two updates of the table. */
const gapMs = 200;
/** The head is compared this often, and sent if it changed. */
const headMs = 1_000;
const beatMs = 5_000;
/** Without requests and readers for so long, the table is dropped. */
const idleMs = 60_000;
/** ServicePorts visited between two turns of the event loop: about a millisecond of work. */
const portsPerSlice = 200;
const mostProblems = 200;

export class NodeViews implements PageViews {
  readonly #node: PageNode;
  readonly #clock: Clock;
  readonly #records: NodeRecords | null;
  /** null: traffic is not counted. */
  #sampler: TrafficSampler | null;
  readonly #pins: StickyReader;
  /** null: there is no daemon. */
  #flowsReader: FlowsReader | null;
  readonly #streams = new Set<LatestEvents>();
  /** null: no browser uses the page. */
  #live: Live | null = null;
  #cancelIdle = () => {};

  /** `records`: null without a daemon. */
  constructor(node: PageNode, clock: Clock, records: NodeRecords | null = null) {
    this.#node = node;
    this.#clock = clock;
    this.#records = records;
    this.#pins = new StickyReader(node.mode.name, records, clock);
    [this.#sampler, this.#flowsReader] = this.#readers();
  }

  readonly answer = async (view: string, query: URLSearchParams): Promise<ViewAnswer> => {
    const live = this.#use();
    await live.settled();
    switch (view) {
      case "services": {
        const window = windowOf(query);
        const filter = filterOf(query);
        if (!filter.ok) return viewError(400, filter.reason);
        return viewAnswer(200, this.#services(live.table.view(filter.value, window.offset, window.limit)));
      }
      case "service":
        return this.#service(live.table, query.get("name") ?? "");
      case "traffic":
        return viewAnswer(200, await trafficView(this.#sampler, this.#traffic, query.get("name") ?? ""));
      case "flows":
        return this.#flows(live.table, query.get("name") ?? "");
      case "arrows":
        return arrowsView(this.#node, this.#records?.walks ?? null, query);
      case "sticky":
        return this.#sticky(live.table, query.get("name") ?? "");
      case "history":
        return changesView(this.#records, query);
      case "explain":
        return tryPacket(this.#node, query);
      case "whatif":
        return whatIfView(this.#node, query);
      case "places":
        return placesView(this.#node);
      case "node":
        return viewAnswer(200, this.#nodeView(live));
      case "update":
        return viewAnswer(200, this.#update(live));
      default:
        return viewError(404, `there is no view ${JSON.stringify(view)}`);
    }
  };

  readonly events = (): LatestEvents => {
    const stream = new LatestEvents();
    this.#streams.add(stream);
    const live = this.#use();
    stream.once("close", () => {
      this.#streams.delete(stream);
      this.#use();
    });
    void live.settled().then(() => stream.send(this.#update(live)));
    return stream;
  };

  close(): void {
    this.#cancelIdle();
    this.#live?.close();
    this.#live = null;
    for (const stream of this.#streams) stream.finish();
  }

  #use(): Live {
    this.#cancelIdle();
    if (this.#streams.size === 0)
      this.#cancelIdle = this.#clock.after(idleMs, () => {
        this.#live?.close();
        this.#live = null;
        [this.#sampler, this.#flowsReader] = this.#readers();
      });
    this.#live ??= new Live(this.#node, this.#clock, (live, kind) => this.#notify(live, kind));
    return this.#live;
  }

  /** Without what earlier ones have read. */
  #readers(): [TrafficSampler | null, FlowsReader | null] {
    const records = this.#records;
    if (records === null) return [null, null];
    const isCounted = records.traffic.setting !== "off";
    return [
      isCounted ? new TrafficSampler(records.traffic, this.#clock) : null,
      new FlowsReader(this.#node, records.flows, this.#clock),
    ];
  }

  #notify(live: Live, kind: "update" | "beat"): void {
    if (this.#streams.size === 0) return;
    const update = kind === "update" ? this.#update(live) : null;
    for (const stream of this.#streams) {
      if (update === null) stream.beat();
      else stream.send(update);
    }
  }

  #update(live: Live): Update {
    return { now: this.#clock.wall(), revision: live.table.revision, head: live.head() };
  }

  get #traffic(): TrafficRecords | null {
    return this.#records?.traffic ?? null;
  }

  #services(window: ServiceWindow): ServicesView {
    const traffic = stateOf(this.#sampler, this.#traffic);
    const sample = this.#sampler?.ask() ?? null;
    const rows = window.rows.map((row) => ({ ...row, traffic: rowTraffic(sample, row.service) }));
    return { ...window, rows, traffic };
  }

  async #flows(table: ServiceTable, name: string): Promise<ViewAnswer> {
    if (this.#flowsReader === null)
      return viewError(400, "there is no daemon, and flows are tracked by the kernel of a node");
    if (table.row(name) === undefined) return noService(name);
    return this.#flowsReader.answer(name);
  }

  async #sticky(table: ServiceTable, name: string): Promise<ViewAnswer> {
    const ports = table.portsOf(name).map(({ port }) => port);
    return ports.length === 0 ? noService(name) : this.#pins.answer(name, ports);
  }

  async #service(table: ServiceTable, name: string): Promise<ViewAnswer> {
    const row = table.row(name);
    const routes = this.#node.routes();
    if (row === undefined || routes === null) return noService(name);
    const ports = [...table.portsOf(name)].sort((a, b) =>
      compare(`${a.port.family} ${a.port.key}`, `${b.port.family} ${b.port.key}`),
    );
    const { revision } = table;
    const problems = table.problemsOf(name).map(printProblem);
    const pictures: PortJson[] = [];
    for (const routed of ports) pictures.push(await inTurns(pictureOf(this.#node.mode, routes, routed)));
    return viewAnswer(200, { revision, row, ports: pictures, problems } satisfies ServiceView);
  }

  #nodeView(live: Live): NodeView {
    const status = this.#node.status();
    const problems = status?.problems ?? this.#node.problems();
    return {
      head: live.head(),
      status: status === null ? null : { ...status, problems: status.problems.slice(0, mostProblems) },
      configuration: status?.configuration ?? writeConfig(this.#node.config()),
      syncs: live.history.points,
      problems: problems.slice(0, mostProblems).map(printProblem),
      moreProblems: Math.max(0, problems.length - mostProblems),
    };
  }
}

function noService(name: string): ViewAnswer {
  return viewError(404, `there is no Service ${JSON.stringify(name)} that Turnout serves`);
}

/** The state while the page is used: the table, and what has changed since it was updated. */
class Live {
  readonly table = new ServiceTable();
  readonly history: SyncHistory;
  readonly #node: PageNode;
  readonly #clock: Clock;
  readonly #notify: (live: Live, kind: "update" | "beat") => void;
  readonly #stop: () => void;
  readonly #pending: Record<Family, Set<PortKey>> = { ipv4: new Set(), ipv6: new Set() };
  #problems: readonly Problem[] | null = null;
  #updating: Promise<void>;
  #isScheduled = false;
  #isFilled = false;
  #closed = false;
  #sent = "";
  #cancelTimer = () => {};
  #cancelTick = () => {};

  constructor(node: PageNode, clock: Clock, notify: (live: Live, kind: "update" | "beat") => void) {
    this.#node = node;
    this.#clock = clock;
    this.#notify = notify;
    this.history = new SyncHistory(node.status()?.syncs);
    this.#stop = node.observe({
      changed: (family, keys) => {
        for (const key of keys) this.#pending[family].add(key);
        this.#schedule();
      },
      synced: (record) => {
        this.history.add(record);
        this.#schedule();
      },
    });
    this.#updating = this.#update();
    this.#tick(0);
  }

  /** Resolves when the table is complete, or nothing can be in it yet. */
  async settled(): Promise<void> {
    await this.#updating;
    if (this.#isFilled || this.#node.routes() === null) return;
    // The first Sync ended after the first update.
    this.#updating = this.#update();
    await this.#updating;
  }

  head(): Head {
    const totals = { services: this.table.size, endpoints: this.table.endpoints };
    return headOf(this.#node, totals, this.#clock.wall());
  }

  close(): void {
    this.#closed = true;
    this.#stop();
    this.#cancelTimer();
    this.#cancelTick();
  }

  #schedule(): void {
    if (this.#isScheduled || this.#closed) return;
    this.#isScheduled = true;
    this.#cancelTimer = this.#clock.after(gapMs, () => {
      this.#isScheduled = false;
      this.#updating = this.#updating.then(() => this.#update());
    });
  }

  /** In slices: a Sync may run between two of them. */
  async #update(): Promise<void> {
    const first = this.#node.routes();
    if (first === null || this.#closed) return;
    for (const family of families) {
      const keys = this.#isFilled ? this.#pending[family] : new Set(first[family].ports.keys());
      this.#pending[family] = new Set();
      await this.#visit(family, keys);
    }
    this.#isFilled = true;
    const problems = this.#node.problems();
    if (problems !== this.#problems) this.table.setProblems(problems);
    this.#problems = problems;
    for (const _ of this.table.settle()) await nextTurn();
    this.#send();
  }

  async #visit(family: Family, keys: ReadonlySet<PortKey>): Promise<void> {
    let count = 0;
    for (const key of keys) {
      this.table.set(family, key, this.#node.routes()![family].ports.get(key));
      if (++count % portsPerSlice === 0) await nextTurn();
    }
  }

  #send(): void {
    if (this.#closed) return;
    const now = JSON.stringify([this.table.revision, this.head()]);
    if (now === this.#sent) return;
    this.#sent = now;
    this.#notify(this, "update");
  }

  #tick(sinceBeat: number): void {
    this.#cancelTick = this.#clock.after(headMs, () => {
      this.#send();
      const isDue = sinceBeat + headMs >= beatMs;
      if (isDue) this.#notify(this, "beat");
      this.#tick(isDue ? 0 : sinceBeat + headMs);
    });
  }
}
