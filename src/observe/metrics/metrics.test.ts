// What /metrics prints: the format, which metrics each mode shows, and the documented table.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { someBuild as build } from "../../../test/support/build-facts.ts";
import { manualClock } from "../../../test/support/manual-clock.ts";
import { parsePrometheus } from "../../../test/support/prometheus.ts";
import type { ModeName } from "../../config/modes.ts";
import { counter, type Definition, everywhere, gauge, histogram, inModes, readCounter } from "./define.ts";
import { reportKernelCounters } from "./kernel-counters.ts";
import { openMetrics } from "./metrics.ts";
import { metricsPage } from "./page.ts";
import { type ProcessView, reportProcess } from "./process.ts";
import { isHidden, type MetricsSettings, openRegistry, prometheusType } from "./registry.ts";
import { observeRequest } from "./requests.ts";
import { observeSweep } from "./sweeps.ts";
import { systemProcess } from "./system-process.ts";
import { metricTable } from "./table.ts";
import { formatFloat } from "./text.ts";

const settings: MetricsSettings = {
  mode: "nftables",
  gates: new Set(),
  kubernetes: "1.37",
  showHidden: false,
};

function opened(given: Partial<MetricsSettings> = {}) {
  return openMetrics(
    { ...settings, ...given },
    build,
    [{ name: "A", stage: "ALPHA", on: true }],
    manualClock(),
  );
}

describe("the text format", () => {
  it("is what the Go client prints", async () => {
    const table = {
      plain: counter("b_total", [], everywhere, "Counts"),
      unused: gauge("a_unused", ["x"], everywhere, "Never set"),
      labelled: gauge("c", ["z", "a"], everywhere, "Back\\slash and\nnew line"),
      timed: histogram("d_seconds", ["f"], [0.5, 1e6], inModes("nftables"), "Times"),
    };
    const { metrics, print } = openRegistry(table, settings, manualClock());
    metrics.plain.add(1234567);
    metrics.labelled.with({ z: "2", a: 'q"\\\n' }).set(-0.25);
    metrics.labelled.with({ z: "1", a: "b" }).set(Number.POSITIVE_INFINITY);
    metrics.labelled.with({ z: "0", a: "b" }).set(1e-5);
    for (const value of [0.5, 0.6, 2e6]) metrics.timed.with({ f: "x" }).observe(value);
    expect(await print()).toBe(
      [
        "# HELP b_total [ALPHA] Counts",
        "# TYPE b_total counter",
        "b_total 1.234567e+06",
        "# HELP c [ALPHA] Back\\\\slash and\\nnew line",
        "# TYPE c gauge",
        'c{a="b",z="0"} 1e-05',
        'c{a="b",z="1"} +Inf',
        'c{a="q\\"\\\\\\n",z="2"} -0.25',
        "# HELP d_seconds [ALPHA] Times",
        "# TYPE d_seconds histogram",
        'd_seconds_bucket{f="x",le="0.5"} 1',
        'd_seconds_bucket{f="x",le="1e+06"} 2',
        'd_seconds_bucket{f="x",le="+Inf"} 3',
        'd_seconds_sum{f="x"} 2.0000011e+06',
        'd_seconds_count{f="x"} 3',
        "",
      ].join("\n"),
    );
  });

  it.each([
    [0, "0"],
    [-1, "-1"],
    [16.384, "16.384"],
    [999999, "999999"],
    [1e6, "1e+06"],
    [1731672862.37, "1.73167286237e+09"],
    [0.0001, "0.0001"],
    [5e-324, "5e-324"],
    [Number.NaN, "NaN"],
    [-Infinity, "-Inf"],
  ])("%d is %s", (value, text) => expect(formatFloat(value)).toBe(text));

  it("03/40 a metric that cannot be read, or not in time, is absent; the others are there", async () => {
    const clock = manualClock();
    const table = {
      broken: readCounter("a_total", [], everywhere, "Broken"),
      hanging: readCounter("b_total", [], everywhere, "Hanging"),
      good: readCounter("c_total", ["p"], everywhere, "Good"),
    };
    const { metrics, print } = openRegistry(table, settings, clock);
    metrics.broken.from(() => {
      throw new Error("no such object");
    });
    metrics.hanging.from(() => new Promise(() => {}));
    metrics.good.from(async () => [{ labels: { p: "TCP" }, value: 3 }]);
    const printed = print();
    await new Promise(setImmediate);
    clock.advance(2000);
    expect(await printed).toBe('# HELP c_total [ALPHA] Good\n# TYPE c_total counter\nc_total{p="TCP"} 3\n');
  });
});

describe("the metrics of a mode", () => {
  const names = (mode: ModeName, ...gates: string[]) =>
    opened({ mode, gates: new Set(gates) })
      .shown.map((one) => one.name)
      .filter((name) => name.startsWith("kubeproxy_"))
      .map((name) => name.replace("kubeproxy_", ""));
  const common = [
    "sync_proxy_rules_duration_seconds",
    "sync_proxy_rules_last_timestamp_seconds",
    "sync_proxy_rules_last_queued_timestamp_seconds",
    "network_programming_duration_seconds",
    "sync_proxy_rules_endpoint_changes_pending",
    "sync_proxy_rules_endpoint_changes_total",
    "sync_proxy_rules_service_changes_pending",
    "sync_proxy_rules_service_changes_total",
    "proxy_healthz_total",
    "proxy_livez_total",
    "sync_proxy_rules_no_local_endpoints_total",
  ];
  const conntrack = [
    "conntrack_reconciler_sync_duration_seconds",
    "conntrack_reconciler_deleted_entries_total",
  ];
  const partial = ["sync_full_proxy_rules_duration_seconds", "sync_partial_proxy_rules_duration_seconds"];

  it.each<[ModeName, string[], string[]]>([
    [
      "iptables",
      [],
      [
        ...partial,
        ...conntrack,
        "sync_proxy_rules_iptables_restore_failures_total",
        "sync_proxy_rules_iptables_partial_restore_failures_total",
        "sync_proxy_rules_iptables_total",
        "sync_proxy_rules_iptables_last",
        "iptables_ct_state_invalid_dropped_packets_total",
        "iptables_localhost_nodeports_accepted_packets_total",
      ],
    ],
    ["ipvs", [], [...conntrack, "sync_proxy_rules_iptables_restore_failures_total"]],
    [
      "nftables",
      [],
      [
        ...partial,
        ...conntrack,
        "sync_proxy_rules_nftables_sync_failures_total",
        "sync_proxy_rules_nftables_cleanup_failures_total",
      ],
    ],
    [
      "nftables",
      ["KubeProxyNFTablesLocalhostNodePorts"],
      [
        ...partial,
        ...conntrack,
        "sync_proxy_rules_nftables_sync_failures_total",
        "sync_proxy_rules_nftables_cleanup_failures_total",
        "nftables_localhost_nodeport_listeners",
        "nftables_localhost_nodeport_listener_creation_failures_total",
        "nftables_localhost_nodeport_rejected_packets_total",
      ],
    ],
    ["userspace", [], []],
  ])("03/33 %s %j", (mode, gates, own) => {
    expect(names(mode, ...gates).sort()).toEqual([...common, ...own].sort());
  });

  it("03/33 of ipvs mode has the types, labels and buckets that the real kube-proxy showed", () => {
    const { series } = JSON.parse(readFileSync(realAnswers, "utf8")) as { series: readonly string[] };
    const theirs = series.filter((line) => line.startsWith("kubeproxy_"));
    const ours = opened({ mode: "ipvs" }).shown.filter(({ name }) => name.startsWith("kubeproxy_"));
    expect(new Set(ours.flatMap(shapesOf))).toEqual(new Set(theirs.map(shapeOf)));
  });

  it("03/37 buckets of the latency histogram start at 0 and end at 300", () => {
    const { buckets } = metricTable.programmingDuration;
    expect([buckets.length, buckets[0], buckets[1], buckets.at(-1)]).toEqual([81, 0, 0.25, 300]);
    expect(buckets.every((bound, i) => i === 0 || bound > buckets[i - 1]!)).toBe(true);
  });

  it("durations have buckets from 1 ms to 16.384 s", () => {
    const { buckets } = metricTable.syncDuration;
    expect([buckets.length, buckets[0], buckets.at(-1)]).toEqual([15, 0.001, 16.384]);
  });

  it("what is not of the mode can be written to and is not shown", async () => {
    const { metrics, print } = opened({ mode: "ipvs" });
    metrics.nftablesFailures.with({ ip_family: "IPv4" }).add();
    expect(await print()).not.toContain("nftables_sync_failures");
  });
});

const realAnswers = join(import.meta.dirname, "../../../test/golden/ipvs/answers.json");

/** `name{label,…} bound type`: a line of the page without the values of labels. */
function shapeOf(line: string): string {
  const [, name, labels, type] = /^(\w+)\{(.*)\} (\w+)$/.exec(line)!;
  const pairs = [...labels!.matchAll(/(\w+)="([^"]*)"/g)].map(([, key, value]) => [key!, value!] as const);
  const bound = pairs.find(([key]) => key === "le")?.[1] ?? "";
  const keys = pairs.map(([key]) => key).filter((key) => key !== "le");
  return `${name}{${keys.join()}} ${bound} ${type}`;
}

/** The same of every line that a metric can have. */
function shapesOf(definition: Definition): readonly string[] {
  const { name, labels, buckets } = definition;
  const type = prometheusType(definition);
  const shape = (suffix: string, bound = "") =>
    `${name}${suffix}{${labels.toSorted().join()}} ${bound} ${type}`;
  if (type !== "histogram") return [shape("")];
  const bounds = [...buckets.map(formatFloat), "+Inf"];
  return [...bounds.map((bound) => shape("_bucket", bound)), shape("_sum"), shape("_count")];
}

describe("a scraper", () => {
  it("accepts everything, with every metric in use", async () => {
    const { metrics, print, printSlis, slis } = opened({ mode: "iptables" });
    for (const [key, { type, labels }] of Object.entries(metricTable)) {
      const values = Object.fromEntries(labels.map((name) => [name, 'a"b\\\n']));
      const instrument = metrics[key as keyof typeof metrics] as unknown as Record<
        string,
        (given: unknown) => unknown
      >;
      const cell = (
        type.startsWith("read") || labels.length === 0 ? instrument : instrument.with!(values)
      ) as typeof instrument;
      if (type.startsWith("read")) cell.from!(() => [{ labels: values, value: 1.5 }]);
      else (cell.observe ?? cell.add)!(2);
    }
    const parsed = parsePrometheus(await print());
    expect(parsed.size).toBe(opened({ mode: "iptables" }).shown.length);
    expect(parsed.get("kubernetes_build_info")!.series[0]!.labels).toMatchObject({ major: "1", minor: "37" });
    expect(parsed.get("kubernetes_feature_enabled")!.series[0]).toMatchObject({
      labels: { name: "A" },
      value: 1,
    });
    slis.healthcheck.with({ name: "ping", type: "healthz" }).set(1);
    expect([...parsePrometheus(await printSlis()).keys()]).toEqual([
      "kubernetes_healthcheck",
      "process_start_time_seconds",
    ]);
  });

  it("counts requests to the API server as a Kubernetes client does", async () => {
    const { metrics, print } = opened();
    const facts = { method: "GET", host: "h:1", resent: false };
    const cost = { seconds: 0.02, heldSeconds: 0, requestBytes: 0, responseBytes: 70 };
    observeRequest(metrics, { ...facts, code: 200, cost });
    observeRequest(metrics, { ...facts, code: 200, cost: null });
    observeRequest(metrics, { ...facts, code: null, cost: { ...cost, responseBytes: null }, resent: true });
    const parsed = parsePrometheus(await print());
    expect(parsed.get("rest_client_requests_total")!.series).toEqual([
      { name: "rest_client_requests_total", labels: { code: "200", host: "h:1", method: "GET" }, value: 2 },
      {
        name: "rest_client_requests_total",
        labels: { code: "<error>", host: "h:1", method: "GET" },
        value: 1,
      },
    ]);
    expect(parsed.get("rest_client_request_retries_total")!.series[0]!.value).toBe(1);
    const countOf = (name: string) => parsed.get(`rest_client_${name}`)!.series.at(-1)!.value;
    expect(countOf("response_size_bytes")).toBe(1);
    for (const name of ["request_duration_seconds", "request_size_bytes", "rate_limiter_duration_seconds"])
      expect(countOf(name)).toBe(2);
  });
});

describe("packets counted by rules", () => {
  const gate = "KubeProxyNFTablesLocalhostNodePorts";

  it("of nfacct objects are shown where they exist", async () => {
    const { metrics, print } = opened({ mode: "iptables" });
    const known = new Map([["ct_state_invalid_dropped_pkts", 7n]]);
    reportKernelCounters(metrics, {
      accounted: async (name) => known.get(name) ?? null,
      nftables: async () => new Map(),
    });
    const text = await print();
    expect(text).toContain("kubeproxy_iptables_ct_state_invalid_dropped_packets_total 7\n");
    expect(text).not.toContain("kubeproxy_iptables_localhost_nodeports_accepted_packets_total");
  });

  it("of the nftables table are shown for the families that have it", async () => {
    const { metrics, print } = opened({ gates: new Set([gate]) });
    const counters = new Map([
      ["localhost-nodeport-rejected-udp", 3n],
      ["foreign", 9n],
    ]);
    reportKernelCounters(metrics, {
      accounted: async () => null,
      nftables: (family) =>
        family === "ipv4" ? Promise.resolve(counters) : Promise.reject(new Error("no table")),
    });
    const { series } = parsePrometheus(await print()).get(
      "kubeproxy_nftables_localhost_nodeport_rejected_packets_total",
    )!;
    expect(series).toMatchObject([{ labels: { ip_family: "IPv4", protocol: "UDP" }, value: 3 }]);
  });
});

it("removed stale flows are counted, failed passes are not", async () => {
  const { metrics, print } = opened();
  observeSweep(metrics, {
    family: "ipv4",
    milliseconds: 20,
    outcome: { kind: "ok", examined: 9, deleted: 2, complete: true },
  });
  observeSweep(metrics, { family: "ipv4", milliseconds: 20, outcome: { kind: "failed", message: "no" } });
  const parsed = parsePrometheus(await print());
  expect(parsed.get("kubeproxy_conntrack_reconciler_deleted_entries_total")!.series).toMatchObject([
    { value: 2 },
  ]);
  expect(parsed.get("kubeproxy_conntrack_reconciler_sync_duration_seconds")!.series.at(-1)!.value).toBe(1);
});

describe("process_*", () => {
  const files: Record<string, string> = {
    "/proc/stat": "cpu 1 2\nbtime 1700000000\n",
    "/proc/self/stat": `7 (a) b) S ${Array.from({ length: 49 }, (_, i) => i + 4).join(" ")}`,
    "/proc/self/limits":
      "Limit  Soft\nMax open files            1024      4096   files\nMax address space   unlimited unlimited bytes\n",
    "/proc/self/net/netstat": "TcpExt: a\nTcpExt: 1\nIpExt: InNoRoutes InOctets OutOctets\nIpExt: 0 11 12\n",
  };
  const view: ProcessView = {
    readText(path) {
      if (files[path] === undefined) throw new Error(path);
      return files[path];
    },
    countEntries: () => 9,
    cpuSeconds: () => 1.5,
    residentBytes: () => 4096,
    heapUsedBytes: () => 2048,
    heapLimitBytes: () => 4096,
  };

  it("are read from /proc", async () => {
    const { metrics, print } = opened();
    reportProcess(metrics, view);
    const parsed = parsePrometheus(await print());
    const values = [...parsed]
      .filter(([name]) => name.startsWith("process_"))
      .map(([name, one]) => [name, one.series[0]!.value]);
    expect(Object.fromEntries(values)).toEqual({
      process_cpu_seconds_total: 1.5,
      process_max_fds: 1024,
      process_network_receive_bytes_total: 11,
      process_network_transmit_bytes_total: 12,
      process_open_fds: 9,
      process_resident_memory_bytes: 4096,
      process_start_time_seconds: 1700000000.22,
      process_virtual_memory_bytes: 23,
      process_virtual_memory_max_bytes: -1,
    });
    expect(parsed.get("process_open_fds")!.help).not.toContain("[");
  });

  it("of this very process are all there", async () => {
    const { metrics, print } = opened();
    reportProcess(metrics, systemProcess);
    const parsed = parsePrometheus(await print());
    expect([...parsed.keys()].filter((name) => name.startsWith("process_"))).toHaveLength(9);
    const started = parsed.get("process_start_time_seconds")!.series[0]!.value;
    expect(Math.abs(started - (Date.now() / 1000 - process.uptime()))).toBeLessThan(60);
  });

  it("are absent where /proc has nothing", async () => {
    const { metrics, print } = opened();
    reportProcess(metrics, { ...view, readText: () => "" });
    expect([...parsePrometheus(await print()).keys()].filter((name) => name.startsWith("process_"))).toEqual([
      "process_cpu_seconds_total",
      "process_open_fds",
      "process_resident_memory_bytes",
    ]);
  });
});

describe("deprecated metrics", () => {
  const old = { ...counter("old_total", [], everywhere, "Old"), deprecatedSince: "1.37" };
  it("are hidden after their release, unless requested", async () => {
    expect(isHidden(old, "1.36")).toBe(false);
    expect(isHidden(old, "1.37")).toBe(true);
    expect(isHidden({ ...old, stability: "BETA" }, "1.37")).toBe(false);
    expect(isHidden({ ...old, stability: "BETA" }, "1.38")).toBe(true);
    expect(isHidden(old, "2.0")).toBe(true);
    expect(await openRegistry({ old }, settings, manualClock()).print()).toBe("");
    const shown = openRegistry({ old }, { ...settings, showHidden: true }, manualClock());
    expect(await shown.print()).toContain("# HELP old_total [ALPHA] (Deprecated since 1.37) Old\n");
  });
});

it("docs/metrics.md is made from the table", async () => {
  await expect(metricsPage()).toMatchFileSnapshot("../../../docs/metrics.md");
});
