// The view "Flows" of a Service: its tracked connections as `turnout flows` lists them, those that lead nowhere first.
import type { BothRoutes } from "../../explain/resolve.ts";
import { HostError } from "../../host/error.ts";
import type { FlowReading } from "../../host/netlink/visit-flows.ts";
import type { Family } from "../../model/address.ts";
import type { Clock } from "../../model/clock.ts";
import type { FlowView } from "../../model/flow.ts";
import type { ServiceName } from "../../model/snapshot.ts";
import type { Mode } from "../../modes/mode.ts";
import { type ViewAnswer, viewAnswer, viewError } from "../../observe/status/page-views.ts";
import { attributor } from "../../traffic/attribute.ts";
import { type Finding, type FlowClass, findingOf } from "../../traffic/classify.ts";
import { eligibilityReader } from "../../traffic/eligibility.ts";
import { compareRows, type FlowRow, rowOf } from "../../traffic/flow-row.ts";
import { keptAliveByEntry } from "../../traffic/kept-alive.ts";
import { todayText } from "../../traffic/print-rows.ts";
import { matcherOf } from "../../traffic/selector.ts";
import type { FlowJson, FlowsView } from "../json.ts";
import type { PageNode } from "../node.ts";

export type FlowRecords = {
  /** Calls `visit` for every flow that the node tracks. Throws HostError. */
  readonly visit: (visit: (flow: FlowView) => void, signal: AbortSignal) => Promise<FlowReading>;
  /** Whether the kernel counts bytes, and notes when flows start; null: unknown. */
  readonly settings: () => { readonly accounting: boolean | null; readonly timestamps: boolean | null };
};

const mostRows = 100;
/** Reading the table takes at most a tenth of the time. */
const share = 10;
const freshMs = 1_000;
/** Services that wait for their turn. */
const mostWaiting = 8;
const longestMs = 10_000;

/** Reads the table only when a client asks, one reading after the other. */
export class FlowsReader {
  readonly #node: Pick<PageNode, "name" | "mode" | "routes">;
  readonly #records: FlowRecords;
  readonly #clock: Clock;
  readonly #waiting = new Map<ServiceName, Promise<ViewAnswer>>();
  #last: { readonly service: ServiceName; readonly answer: ViewAnswer } | null = null;
  #turn: Promise<unknown> = Promise.resolve();
  #readAt = Number.NEGATIVE_INFINITY;
  #tookMs = 0;

  constructor(node: Pick<PageNode, "name" | "mode" | "routes">, records: FlowRecords, clock: Clock) {
    this.#node = node;
    this.#records = records;
    this.#clock = clock;
  }

  answer(service: ServiceName): Promise<ViewAnswer> {
    const last = this.#last;
    if (last?.service === service && this.#restMs() > 0) return Promise.resolve(last.answer);
    const known = this.#waiting.get(service);
    if (known !== undefined) return known;
    if (this.#waiting.size >= mostWaiting)
      return Promise.resolve(viewError(503, "the flows of other Services are being read; try again"));
    const answer = this.#turn.then(() => this.#inTurn(service)).finally(() => this.#waiting.delete(service));
    this.#waiting.set(service, answer);
    this.#turn = answer.catch(() => undefined);
    return answer;
  }

  /** How long no other reading may begin. */
  #restMs(): number {
    return this.#readAt + Math.max(freshMs, this.#tookMs * share) - this.#clock.steady();
  }

  async #inTurn(service: ServiceName): Promise<ViewAnswer> {
    const rest = this.#restMs();
    if (rest > 0) await new Promise<void>((resolve) => this.#clock.after(rest, resolve));
    const routes = this.#node.routes();
    if (routes === null) return viewError(503, "the daemon is starting");
    const start = this.#clock.steady();
    const signal = AbortSignal.timeout(longestMs);
    try {
      const answer = viewAnswer(200, await this.#read(service, routes, signal));
      this.#last = { service, answer };
      return answer;
    } catch (error) {
      if (signal.aborted)
        return viewError(
          503,
          `cannot read conntrack: it takes longer than ${longestMs / 1000} s; use turnout flows`,
        );
      if (!(error instanceof HostError)) throw error;
      return viewError(503, error.message);
    } finally {
      this.#readAt = this.#clock.steady();
      this.#tookMs = this.#readAt - start;
    }
  }

  async #read(service: ServiceName, routes: BothRoutes, signal: AbortSignal): Promise<FlowsView> {
    const { name: node, mode } = this.#node;
    const now = this.#clock.wall();
    const list = new FlowList(service, mode, routes, now);
    const { visit, settings } = this.#records;
    const reading = await visit((flow) => list.visit(flow), signal);
    const note = mode.conntrack === "own" ? relayed : null;
    return { node, mode: mode.name, at: now, note, ...settings(), ...reading, ...list.found() };
  }
}

const relayed = "in this mode connections end at sockets of Turnout: conntrack does not show endpoints";

/** The flows of one Service in a reading; of many, some. */
class FlowList {
  readonly #readers: Readonly<Record<Family, ReturnType<typeof readerOf>>>;
  readonly #matches: ReturnType<typeof matcherOf>;
  readonly #now: number;
  readonly #keptAlive: ReturnType<typeof keptAliveByEntry>;
  readonly #stale: FlowJson[] = [];
  readonly #others: FlowJson[] = [];
  readonly #classes: Partial<Record<FlowClass, number>> = {};
  #matched = 0;

  constructor(service: ServiceName, mode: Mode, routes: BothRoutes, now: number) {
    this.#readers = { ipv4: readerOf(mode, routes.ipv4), ipv6: readerOf(mode, routes.ipv6) };
    this.#matches = matcherOf({ kind: "service", service, port: null, protocol: null });
    this.#now = now;
    this.#keptAlive = keptAliveByEntry(now);
  }

  visit(flow: FlowView): void {
    const { attribute, eligibilityOf } = this.#readers[flow.family];
    const attribution = attribute(flow);
    if (!this.#matches(flow, attribution)) return;
    this.#matched++;
    const finding = findingOf(flow, attribution, eligibilityOf, this.#keptAlive);
    if (finding !== null) this.#classes[finding.class] = (this.#classes[finding.class] ?? 0) + 1;
    const rows = finding === null ? this.#others : this.#stale;
    if (rows.length >= mostRows) return;
    const row = rowOf(flow, attribution, { eligibilityOf, now: this.#now });
    rows.push(flowJson(row, finding));
  }

  found(): Pick<FlowsView, "matched" | "stale" | "classes" | "flows"> {
    const flows = [this.#stale, this.#others].flatMap((rows) => rows.sort(compareRows)).slice(0, mostRows);
    const stale = Object.values(this.#classes).reduce((sum, count) => sum + count, 0);
    return { matched: this.#matched, stale, classes: this.#classes, flows };
  }
}

function flowJson({ pod: _pod, ...row }: FlowRow, finding: Finding | null): FlowJson {
  return {
    ...row,
    words: todayText(row),
    finding: finding === null ? null : { class: finding.class, because: finding.because },
  };
}

function readerOf({ behavior, conntrack }: Mode, routes: BothRoutes[Family]) {
  return {
    attribute: attributor(routes, behavior, { conntrack }),
    eligibilityOf: eligibilityReader(routes, behavior),
  };
}
