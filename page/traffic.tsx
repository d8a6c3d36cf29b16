// The traffic of a port of a Service: totals, rates, how even its endpoints are used, and counters over time.
import { useEffect, useState } from "preact/hooks";
import type uPlot from "uplot";
import type { PortJson, PortTrafficJson, ServiceTraffic, TrafficView } from "../src/page/json.ts";
import type { ViewProps } from "./app.tsx";
import { addressOf, amount, bytes, clockTime, percent, rate } from "./format.ts";
import { type Loaded, usePolled } from "./live.ts";
import { Command, Message, NoData, NumberHead } from "./parts.tsx";
import { axisOf, fromZero, Plot } from "./plot.tsx";
import { chartData, sampled, type TrafficPoint } from "./samples.ts";

/** How often it is read while it is shown. */
const readMs = 2_000;

/** Of a Service, again and again while it is counted. */
function useTraffic({ node, paused }: ViewProps, service: string): Loaded<TrafficView> {
  const [isCounted, setCounted] = useState(true);
  const loaded = usePolled<TrafficView>("traffic", { node, name: service }, readMs, !paused && isCounted);
  const counted = loaded.value?.state.counted ?? true;
  useEffect(() => setCounted(counted), [counted]);
  return loaded;
}

type TrafficProps = ViewProps & {
  readonly service: string;
  readonly port: PortJson;
};

export function Traffic(props: TrafficProps) {
  const { service, port, page, node, names } = props;
  const { value, error } = useTraffic(props, service);
  if (value === null) return <NoData error={error} title="Cannot show the traffic" />;
  if (!value.state.counted) return <p class="empty">{sentence(value.state.because)}</p>;
  const { traffic } = value;
  if (traffic === null) return <Message title="Not read yet" />;
  const own = traffic.ports.find((each) => isOf(each, port)) ?? null;
  const points = sampled(`${node} ${service} ${port.name} ${port.port}/${port.protocol}`, traffic.at, own);
  return (
    <div class="traffic">
      <Notes traffic={traffic} />
      <Totals port={own} isCounted={traffic.counters.counted} />
      <TrafficChart points={points} />
      <EndpointTable traffic={traffic} own={own} port={port} names={names} />
      <Command line={`turnout top ${service} ${page.flags}`.trim()} />
    </div>
  );
}

function sentence(text: string): string {
  return `${text[0]!.toUpperCase()}${text.slice(1)}.`;
}

/** Counted in both IP families together. */
function isOf(traffic: PortTrafficJson, { name, port, protocol }: PortJson): boolean {
  return traffic.portName === name && traffic.port === port && traffic.protocol === protocol;
}

function Notes({ traffic: { counters, flows } }: { readonly traffic: ServiceTraffic }) {
  const lines = [...coverage("connections", counters), ...coverage("packets and bytes", flows)];
  return (
    <>
      {lines.map((line) => (
        <p key={line} class="note">
          {line}
        </p>
      ))}
    </>
  );
}

function coverage(what: string, covered: ServiceTraffic["counters"]): string[] {
  if (!covered.counted) return [`${what} are not counted: ${covered.because}`];
  const last = covered.gaps.at(-1);
  if (last === undefined) return [];
  const others = covered.gaps.length > 1 ? `, and ${covered.gaps.length - 1} more before that` : "";
  return [`${what} are unknown from ${clockTime(last.from)} to ${clockTime(last.to)}${others}`];
}

function Totals({ port, isCounted }: { readonly port: PortTrafficJson | null; readonly isCounted: boolean }) {
  const none = port === null ? 0 : null;
  const ofCounters = isCounted ? none : null;
  const row = port?.row;
  const facts: (readonly [string, string, string?])[] = [
    ["Active", amount(row?.active ?? none)],
    ["New/s", rate(row?.connectionRate ?? ofCounters)],
    ["Connections", amount(row?.connections ?? ofCounters)],
    ["In/s", bytes(row?.bytesInRate ?? null)],
    ["Out/s", bytes(row?.bytesOutRate ?? null)],
    ["In", bytes(row?.bytesIn ?? null)],
    ["Out", bytes(row?.bytesOut ?? null)],
    ["Refused", amount(port?.counts?.refused ?? ofCounters), "packets that had no endpoint"],
    [
      "Outside ranges",
      amount(port?.counts?.outOfRange ?? ofCounters),
      "packets dropped because of loadBalancerSourceRanges",
    ],
    ...(row?.skew == null
      ? []
      : [
          [
            "Skew",
            `${row.skew.toFixed(1)}x`,
            "connections of the busiest endpoint divided by the average",
          ] as const,
        ]),
  ];
  return (
    <dl class="facts totals">
      {facts.map(([label, text, title]) => (
        <div key={label} title={title}>
          <dt>{label}</dt>
          <dd>{text}</dd>
        </div>
      ))}
    </dl>
  );
}

function TrafficChart({ points }: { readonly points: readonly TrafficPoint[] }) {
  const last = points.at(-1);
  if (points.length < 2 || last === undefined)
    return (
      <p class="empty">The chart begins with the next reading, and lasts as long as this page is open.</p>
    );
  const label = `${points.length} readings; now ${amount(last.active)} active connections, ${amount(last.connections)} since the rules were written`;
  return <Plot label={label} height={170} data={chartData(points)} options={optionsOf} />;
}

function optionsOf(colour: (name: string) => string): Omit<uPlot.Options, "width" | "height"> {
  const axis = axisOf(colour);
  const line = (label: string, scale: string, name: string) => ({
    label,
    scale,
    stroke: colour(name),
    width: 2,
    spanGaps: false,
    points: { show: false },
  });
  return {
    legend: { show: true, live: true },
    cursor: { y: false },
    scales: { rate: { range: fromZero }, active: { range: fromZero } },
    axes: [
      axis,
      { ...axis, scale: "rate", values: (_, ticks) => ticks.map((tick) => `${tick}/s`), size: 60 },
      { ...axis, scale: "active", side: 1, grid: { show: false }, size: 50 },
    ],
    series: [
      {},
      line("new/s", "rate", "--accent"),
      line("refused/s", "rate", "--bad"),
      line("active", "active", "--good"),
    ],
  };
}

type EndpointTableProps = {
  readonly traffic: ServiceTraffic;
  readonly own: PortTrafficJson | null;
  readonly port: PortJson;
  readonly names: ViewProps["names"];
};

function EndpointTable({ traffic, own, port, names }: EndpointTableProps) {
  if (traffic.setting !== "endpoints")
    return (
      <p class="empty">Endpoints are not counted one by one; start the daemon with --traffic=endpoints.</p>
    );
  if (own === null || own.row.endpoints.length === 0)
    return <p class="empty">No connection was counted yet.</p>;
  const total = own.row.endpoints.reduce((sum, { connections }) => sum + (connections ?? 0), 0);
  const nodeOf = new Map(port.endpoints.map(({ endpoint, node }) => [endpoint, node]));
  return (
    <div class="wide" role="region" aria-label="Endpoints" tabIndex={0}>
      <table class="plain">
        <thead>
          <tr>
            <th scope="col">Endpoint</th>
            <th scope="col">Node</th>
            <NumberHead>Active</NumberHead>
            <NumberHead>New/s</NumberHead>
            <NumberHead>Connections</NumberHead>
            <NumberHead>Share</NumberHead>
          </tr>
        </thead>
        <tbody>
          {own.row.endpoints.map(({ endpoint, active, connectionRate, connections }) => (
            <tr key={endpoint}>
              <td>
                <code>{endpoint}</code> <span class="dim">{names[addressOf(endpoint)]}</span>
              </td>
              <td>
                <bdi>{nodeOf.get(endpoint) ?? ""}</bdi>
              </td>
              <td class="number">{amount(active)}</td>
              <td class="number">{rate(connectionRate)}</td>
              <td class="number">{amount(connections)}</td>
              <td class="number">{total === 0 ? "–" : percent((connections ?? 0) / total)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
