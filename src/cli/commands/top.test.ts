// `turnout top` against a daemon's socket: the screens at several widths, rates, order, filter, and what cannot be counted.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { outputWith } from "../../../test/support/command-output.ts";
import { manualClock } from "../../../test/support/manual-clock.ts";
import type { Answering } from "../../observe/status/socket.ts";
import { serveStatus } from "../../observe/status/socket.ts";
import type { Status } from "../../observe/status/status.ts";
import type { PortTraffic, TrafficReport } from "../../observe/traffic/report.ts";
import { nothingEarlier, topRows } from "../../observe/traffic/top-rows.ts";
import { printTop } from "../top/print.ts";
import { top } from "./top.ts";

const noon = Date.UTC(2026, 10, 18, 12);
const flows = (active: number, bytesIn: number, bytesOut: number) => ({
  active,
  packetsIn: 1,
  bytesIn,
  packetsOut: 1,
  bytesOut,
});

function port(name: string, connections: number, more: Partial<PortTraffic> = {}): PortTraffic {
  return {
    namespace: "shop",
    name,
    portName: "http",
    protocol: "tcp",
    port: 80,
    counts: { connections, refused: 0, outOfRange: 0 },
    flows: flows(connections % 10, connections * 500, connections * 12_345),
    endpoints: [],
    ...more,
  };
}

const report: TrafficReport = {
  setting: "endpoints",
  mode: "nftables",
  at: noon,
  flowsAt: noon,
  counters: { counted: true, gaps: [] },
  flows: { counted: true, gaps: [] },
  ports: [
    port("cart", 120_345, { counts: { connections: 120_345, refused: 7, outOfRange: 3 } }),
    port("dns", 4_100_000, { portName: "", protocol: "udp", port: 53, flows: flows(0, 1, 2 ** 31) }),
    port("web", 52, {
      endpoints: [
        { endpoint: "10.0.1.5:8080", connections: 45, flows: flows(3, 1, 1) },
        { endpoint: "[fd00::5]:8080", connections: 7, flows: null },
      ],
    }),
  ],
};

/** Ten seconds later. */
const later: TrafficReport = {
  ...report,
  at: noon + 10_000,
  flowsAt: noon + 10_000,
  ports: report.ports.map((each) => ({
    ...each,
    counts: { ...each.counts!, connections: each.counts!.connections + each.name.length },
    flows: { ...each.flows!, bytesOut: each.flows!.bytesOut + 20_480 },
  })),
};

const since = (report: TrafficReport) => ({ counters: report, flows: report });

const screen = { width: 110, lines: null, endpoints: false, now: noon };
const all = { sort: null, filter: null };

it("prints 200,000 Services, and a Service with 200,000 endpoints", () => {
  const many = Array.from({ length: 200_000 }, (_, i) => i);
  const screen = { width: 120, lines: null, endpoints: false, now: noon };
  const ports = many.map((i) => port(`s${i}`, i));
  const all = { ...report, ports };
  expect(
    printTop(topRows(all, nothingEarlier, { filter: null, sort: "name" }), all, screen).split("\n"),
  ).toHaveLength(200_002);
  const endpoints = many.map((i) => ({ endpoint: `e${i}`, connections: i === 0 ? 2 : 0, flows: null }));
  const one = { ...report, ports: [port("huge", 2, { endpoints })] };
  expect(topRows(one, nothingEarlier, { filter: null, sort: "name" })[0]!.skew).toBe(200_000);
});

describe("the table", () => {
  it("of one report", async () => {
    await expectGolden("top", printTop(topRows(report, nothingEarlier, all), report, screen));
  });

  it("with rates and endpoints", async () => {
    const text = printTop(topRows(later, since(report), all), later, { ...screen, endpoints: true });
    await expectGolden("top-live", text);
  });

  it("leaves out columns in narrow terminals, and never exceeds them", async () => {
    const texts = [72, 40, 16].map((width) => {
      const text = printTop(topRows(later, since(report), all), later, { ...screen, width });
      for (const line of text.split("\n")) expect(line.length).toBeLessThanOrEqual(width);
      return text;
    });
    await expectGolden("top-narrow", texts.join("\n"));
  });

  it("shows what is not counted, and since when what is not known", async () => {
    const gaps = [
      { from: noon - 900_000, to: noon - 890_000 },
      { from: noon - 70_000, to: noon - 65_000 },
    ];
    const lossy: TrafficReport = {
      ...report,
      counters: { counted: true, gaps },
      flows: { counted: false, because: "nf_conntrack_acct is not 1" },
    };
    const off: TrafficReport = {
      ...report,
      setting: "off",
      counters: { counted: false, because: "--traffic is off" },
      flows: { counted: false, because: "--traffic is off" },
      ports: [port("web", 0, { counts: null, flows: flows(12, 0, 0) })],
    };
    const texts = [lossy, off, { ...report, ports: [] }].map((each) =>
      printTop(topRows(each, nothingEarlier, all), each, screen),
    );
    await expectGolden("top-notes", texts.join("\n"));
  });

  it("escapes names, and shows as many lines as fit", () => {
    const many = { ...report, ports: Array.from({ length: 9 }, (_, i) => port(`a\n\x1b[2J${i}`, i)) };
    const text = printTop(topRows(many, nothingEarlier, all), many, { ...screen, lines: 4 });
    expect(text.split("\n")).toHaveLength(7);
    expect(text).toContain("and 5 more");
    expect(text).not.toContain("\x1b");
    expect(text).toContain(String.raw`shop/a\n\u001b[2J8`);
  });
});

describe("order and filter", () => {
  const names = (sort: Parameters<typeof topRows>[2]["sort"], filter: string | null = null) =>
    topRows(later, since(report), { sort, filter }).map(({ service }) => service.slice(5));

  it("is by rate unless asked otherwise", () => {
    expect(names(null)).toEqual(["cart", "dns", "web"]);
    expect(names("connections")).toEqual(["dns", "cart", "web"]);
    expect(names("active")).toEqual(["cart", "web", "dns"]);
    expect(names("refused")).toEqual(["cart", "dns", "web"]);
    expect(names("name")).toEqual(["cart", "dns", "web"]);
    expect(names(null, "dns:53")).toEqual(["dns"]);
    expect(names(null, "web:http")).toEqual(["web"]);
  });

  it("has rates per second, none without an earlier report, and no negative ones after a restart", () => {
    const [row] = topRows(later, since(report), { sort: null, filter: "web" });
    expect(row).toMatchObject({ connectionRate: 0.3, bytesOutRate: 2048, skew: (45 * 2) / 52 });
    expect(topRows(later, nothingEarlier, all)[0]).toMatchObject({ connectionRate: null });
    const restarted = {
      ...report,
      at: noon + 20_000,
      ports: report.ports.map((each) => ({ ...each, counts: { ...each.counts!, connections: 1 } })),
    };
    for (const each of topRows(restarted, since(later), all)) expect(each.connectionRate).toBe(0);
  });
});

describe("the command", () => {
  let folder: string;
  let close = () => {};

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "turnout-top-"));
  });
  afterEach(() => {
    close();
    rmSync(folder, { recursive: true });
  });

  const serve = async (traffic: Answering["/traffic"]) => {
    const socket = join(folder, "s.sock");
    const answering: Answering = {
      "/": () => ({}) as Status,
      "/relays": () => ({}),
      "/view": () => null,
      "/traffic": traffic,
      "/cluster": () => [null],
      "/history": () => [],
    };
    close = await serveStatus(socket, () => answering);
    return `--source=daemon:${socket}`;
  };

  it("prints once, as a table or as JSON", async () => {
    const source = await serve(() => report);
    const { code, out } = await outputWith(top, ["--once", source]);
    expect({ code, first: out.split("\n")[0] }).toEqual({
      code: 0,
      first: expect.stringContaining("SERVICE"),
    });
    const json = await outputWith(top, ["--once", "-o", "json", source]);
    expect(JSON.parse(json.out)).toEqual(report);
  });

  it("repeats until it is interrupted, clearing the screen of a terminal only", async () => {
    let served = 0;
    const source = await serve(() => (++served === 1 ? report : later));
    const stop = new AbortController();
    const clock = manualClock();
    let cleared = 0;
    const running = outputWith(
      top,
      [source, "--interval=5"],
      { clock, clearScreen: () => cleared++, height: 40 },
      stop.signal,
    );
    await expect.poll(() => served).toBe(1);
    await expect
      .poll(() => {
        clock.advance(5_000);
        return served;
      })
      .toBeGreaterThanOrEqual(2);
    await expect.poll(() => cleared).toBeGreaterThanOrEqual(2);
    stop.abort();
    const { code, out } = await running;
    expect(code).toBe(0);
    expect(out).toContain("2048B");
  });

  it.each([
    [["--interval=0"], "--interval must be a number of seconds between 1 and 3600"],
    [["--sort=size"], "--sort"],
    [["--source=files:x"], "--source must be daemon, daemon:SOCKET or playground"],
    [["--source=daemon:/nowhere"], "no daemon is running on this machine"],
  ])("refuses %j", async (argv, message) => {
    const { code, err } = await outputWith(top, argv);
    expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining(message) });
  });

  it("reports a daemon that is starting, and one that is older", async () => {
    const starting = await serve(() => null);
    expect((await outputWith(top, ["--once", starting])).err).toContain("the daemon is starting");
    close();
    const older = await serve(() => ({ pid: 1 }) as unknown as TrafficReport);
    expect((await outputWith(top, ["--once", older])).err).toContain("older than this program");
  });
});

function expectGolden(name: string, text: string): Promise<void> {
  return expect(text).toMatchFileSnapshot(`../../../test/golden/commands/${name}.txt`);
}
