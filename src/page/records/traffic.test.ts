// Traffic for the page: read only when it is asked for and not too often, with the numbers of `turnout top`.
import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { type ManualClock, manualClock } from "../../../test/support/manual-clock.ts";
import type { PortTraffic, TrafficReport } from "../../observe/traffic/report.ts";
import { topRows } from "../../observe/traffic/top-rows.ts";
import { rowTraffic, stateOf, TrafficSampler, trafficView } from "./traffic.ts";

const port = (name: string, portName: string, connections: number, more: Partial<PortTraffic> = {}) => ({
  namespace: "shop",
  name,
  portName,
  protocol: "tcp" as const,
  port: 80,
  counts: { connections, refused: 3, outOfRange: 1 },
  flows: { active: 2, packetsIn: 1, bytesIn: connections * 100, packetsOut: 1, bytesOut: connections * 1000 },
  endpoints: [
    { endpoint: "10.0.1.1:8080", connections: connections / 2, flows: null },
    { endpoint: "10.0.1.2:8080", connections: 0, flows: null },
  ],
  ...more,
});

const reportOf = (at: number, connections: number): TrafficReport => ({
  setting: "endpoints",
  mode: "nftables",
  at,
  flowsAt: at,
  counters: { counted: true, gaps: [] },
  flows: { counted: true, gaps: [] },
  ports: [port("web", "admin", 10), port("web", "http", connections)],
});

/** Connections grow by ten a second. */
function counting(clock: ManualClock, tookMs = 0) {
  const began = clock.wall();
  const state = { reads: 0 };
  const read = async () => {
    state.reads++;
    clock.advance(tookMs);
    return reportOf(clock.wall(), 100 + (clock.wall() - began) / 100);
  };
  return { state, sampler: new TrafficSampler({ setting: "endpoints", read }, clock) };
}

describe("the sampler", () => {
  it("reads when it is asked, at most every two seconds, and not by itself", async () => {
    const clock = manualClock();
    const { state, sampler } = counting(clock);
    clock.advance(60_000);
    expect([state.reads, clock.pending()]).toEqual([0, 0]);
    for (let i = 0; i < 40; i++) {
      sampler.ask();
      await nextTurn();
      clock.advance(100);
    }
    expect(state.reads).toBe(2);
    clock.advance(600_000);
    await nextTurn();
    expect(state.reads).toBe(2);
  });

  it("takes a twentieth of the time where reading takes long, and waits ten seconds at most", async () => {
    const clock = manualClock();
    for (const [tookMs, gap] of [
      [200, 4_000],
      [5_000, 10_000],
    ] as const) {
      const { state, sampler } = counting(clock, tookMs);
      await sampler.first();
      clock.advance(gap - 100);
      sampler.ask();
      await nextTurn();
      expect(state.reads).toBe(1);
      clock.advance(100);
      sampler.ask();
      await nextTurn();
      expect(state.reads).toBe(2);
    }
  });

  it("has the rows of turnout top, with rates since the reading before", async () => {
    const clock = manualClock();
    const { sampler } = counting(clock);
    const first = (await sampler.first())!.report;
    clock.advance(2_000);
    sampler.ask();
    await nextTurn();
    const { report, byService } = sampler.ask()!;
    const rows = topRows(report, { counters: first, flows: first }, { sort: "name", filter: null });
    expect(byService.get("shop/web")!.map(({ row }) => row)).toEqual(rows);
    expect(byService.get("shop/web")!.map(({ row: _row, ...traffic }) => traffic)).toEqual(report.ports);
    expect(rows[1]!.connectionRate).toBe(10);
  });

  it("has rates of bytes from one reading of conntrack to the next, also when counters are read more often", async () => {
    const clock = manualClock();
    let reads = 0;
    const read = async () => {
      const at = clock.wall();
      // Conntrack is read every third time; a thousand bytes arrive each second.
      const flowsAt = at - (reads++ % 3) * 2_000;
      const flows = { active: 1, packetsIn: 1, bytesIn: flowsAt, packetsOut: 1, bytesOut: 2 * flowsAt };
      return { ...reportOf(at, 100 + at), flowsAt, ports: [port("web", "http", 100 + at, { flows })] };
    };
    const sampler = new TrafficSampler({ setting: "services", read }, clock);
    const rates: unknown[] = [];
    await sampler.first();
    for (let i = 0; i < 8; i++) {
      const { connectionRate, bytesInRate, bytesOutRate } = sampler.ask()!.byService.get("shop/web")![0]!.row;
      rates.push([connectionRate, bytesInRate, bytesOutRate]);
      clock.advance(2_000);
      sampler.ask();
      await nextTurn();
    }
    expect(rates.slice(0, 3)).toEqual([
      [null, null, null],
      [1000, null, null],
      [1000, null, null],
    ]);
    expect(rates.slice(3)).toEqual(rates.slice(3).map(() => [1000, 1000, 2000]));
  });

  it("has no rate over a time without requests", async () => {
    const clock = manualClock();
    const { sampler } = counting(clock);
    await sampler.first();
    clock.advance(3_600_000);
    sampler.ask();
    await nextTurn();
    expect(sampler.ask()!.byService.get("shop/web")![1]!.row.connectionRate).toBeNull();
  });
});

describe("the row of a Service", () => {
  it("is the sum of its ports, and zero without traffic", async () => {
    const sample = await counting(manualClock()).sampler.first();
    expect(rowTraffic(sample, "shop/web")).toEqual({
      active: 4,
      connections: 110,
      connectionRate: null,
      refused: 8,
      skew: 2,
    });
    expect(rowTraffic(sample, "shop/quiet")).toEqual({
      active: 0,
      connections: 0,
      connectionRate: 0,
      refused: 0,
      skew: null,
    });
    expect(rowTraffic(null, "shop/web")).toBeNull();
  });

  it("has only active connections where the mode counts no others", async () => {
    const clock = manualClock();
    const report = {
      ...reportOf(1, 5),
      counters: { counted: false, because: "ipvs mode does not" } as const,
      ports: [port("web", "http", 5, { counts: null })],
    };
    const sample = await new TrafficSampler({ setting: "services", read: async () => report }, clock).first();
    expect(rowTraffic(sample, "shop/web")).toMatchObject({ active: 2, connections: null, refused: null });
    expect(rowTraffic(sample, "shop/quiet")).toMatchObject({ active: 0, connections: null });
  });
});

it("what is not counted is stated, and nothing is read", async () => {
  const read = () => Promise.reject(new Error("must not be read"));
  const off = { setting: "off", read } as const;
  expect(stateOf(null, off)).toEqual({
    counted: false,
    because: "not counted; start the daemon with --traffic=services",
  });
  expect(await trafficView(null, off, "shop/web")).toMatchObject({ traffic: null });
  expect(await trafficView(null, null, "shop/web")).toMatchObject({
    state: { because: "not counted: there is no daemon" },
  });
});
