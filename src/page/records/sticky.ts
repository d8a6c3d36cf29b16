// Sticky clients of a Service: which ones the kernel keeps at which endpoint, read while its view is shown.
import { HostError } from "../../host/error.ts";
import type { Clock } from "../../model/clock.ts";
import type { ServiceName, ServicePort } from "../../model/snapshot.ts";
import type { Pinned } from "../../modes/mode.ts";
import { type ViewAnswer, viewAnswer, viewError } from "../../observe/status/page-views.ts";
import type { StickyEndpoint, StickyView } from "../json.ts";

/** Throws HostError. */
export type PinnedClients = (port: ServicePort, signal: AbortSignal) => Promise<readonly Pinned[]>;

const mostClients = 20;
/** A Service with more is not read: each endpoint has a set of its own. */
const mostEndpoints = 200;
const freshMs = 2_000;
const longestMs = 5_000;

/** One reading at a time, and of the same Service at most every two seconds. */
export class StickyReader {
  readonly #mode: string;
  readonly #records: { readonly pinned: PinnedClients | null } | null;
  readonly #clock: Clock;
  #last: { readonly service: ServiceName; readonly at: number; readonly answer: ViewAnswer } | null = null;
  #turn: Promise<unknown> = Promise.resolve();

  /** `records`: null without a daemon; `pinned`: null where the mode does not report them. */
  constructor(mode: string, records: { readonly pinned: PinnedClients | null } | null, clock: Clock) {
    this.#mode = mode;
    this.#records = records;
    this.#clock = clock;
  }

  answer(service: ServiceName, ports: readonly ServicePort[]): Promise<ViewAnswer> {
    const answer = this.#turn.then(() => this.#inTurn(service, ports));
    this.#turn = answer.catch(() => undefined);
    return answer;
  }

  async #inTurn(service: ServiceName, ports: readonly ServicePort[]): Promise<ViewAnswer> {
    const last = this.#last;
    if (last?.service === service && this.#clock.steady() - last.at < freshMs) return last.answer;
    const answer = await this.#read(ports);
    this.#last = { service, at: this.#clock.steady(), answer };
    return answer;
  }

  async #read(ports: readonly ServicePort[]): Promise<ViewAnswer> {
    const sticky = ports.filter(({ affinity }) => affinity !== null);
    const note = this.#noteOn(sticky);
    if (note !== null) return viewAnswer(200, { note, endpoints: [] } satisfies StickyView);
    const signal = AbortSignal.timeout(longestMs);
    const read = this.#records!.pinned!;
    try {
      const endpoints: StickyEndpoint[] = [];
      for (const port of sticky)
        endpoints.push(...(await read(port, signal)).map((pinned) => endpointJson(port, pinned)));
      return viewAnswer(200, { note, endpoints } satisfies StickyView);
    } catch (error) {
      if (signal.aborted) return viewError(503, `the kernel did not answer in ${longestMs / 1000} s`);
      if (!(error instanceof HostError)) throw error;
      return viewError(503, `cannot read the kernel: ${error.message}`);
    }
  }

  #noteOn(sticky: readonly ServicePort[]): string | null {
    if (sticky.length === 0) return "no port of the Service has session affinity";
    if (this.#records === null) return "not known: there is no daemon";
    if (this.#records.pinned === null)
      return `not known: ${this.#mode} mode does not report them; nftables mode does`;
    if (sticky.some(({ endpoints }) => endpoints.length > mostEndpoints))
      return `not read: a port has more than ${mostEndpoints} endpoints`;
    return null;
  }
}

function endpointJson(
  { family, port, protocol }: ServicePort,
  { endpoint, set, clients }: Pinned,
): StickyEndpoint {
  const sorted = clients.toSorted((a, b) => b.seconds - a.seconds || (a.address < b.address ? -1 : 1));
  return {
    family,
    port,
    protocol,
    endpoint,
    set,
    count: clients.length,
    clients: sorted.slice(0, mostClients),
  };
}
