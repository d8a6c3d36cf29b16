// The live view as text: Services with their endpoints, nodes with their Syncs, output, and a prompt. Pure.
import { printableLine } from "../src/model/printable.ts";
import { type ApiObject, dig, isMap, mapsIn, scalar } from "./api/objects/object.ts";
import type { SyncReport } from "./daemon.ts";
import type { Line } from "./line.ts";
import { cut, folded, padded, tail, widthOf } from "./text.ts";

export type ViewState = {
  readonly mode: string;
  /** What happens to clients of a Service without endpoints. */
  readonly noEndpoints: string;
  readonly kubeconfig: string;
  readonly services: readonly ApiObject[];
  readonly pods: readonly ApiObject[];
  readonly slices: readonly ApiObject[];
  readonly nodes: readonly ApiObject[];
  /** The last Sync of each node, and how many there were. */
  readonly syncs: ReadonlyMap<
    string,
    { readonly report: SyncReport; readonly count: number; readonly at: number }
  >;
  /** All output lines so far, oldest first. */
  readonly output: readonly string[];
  /** How many of the latest lines are scrolled out of view. */
  readonly scrolledLines: number;
  readonly line: Line;
  readonly busy: boolean;
  readonly now: number;
};

export type Screen = { readonly width: number; readonly height: number; readonly colour: boolean };

/** Exactly `height` lines, none wider than `width`. */
export function renderView(state: ViewState, screen: Screen): string[] {
  const paint = painter(screen.colour);
  const top = [
    `${paint.bold("Turnout playground")}  ${state.mode} mode, ${count(state.nodes.length, "node")}`,
    paint.dim(`kubectl --kubeconfig ${state.kubeconfig} get services`),
    "",
  ];
  const nodes = ["", ...nodeLines(state, paint)];
  const hint = "Enter sends samples · send explain scale stop kill drain flush help quit";
  const foot = [paint.dim(hint), `${state.busy ? "…" : ">"} ${promptText(state.line, screen.width)}`];
  const rules = 2;
  const whole = screen.height - foot.length - rules;
  const room = whole - top.length - nodes.length;
  // A very small screen shows only the output.
  const head = room < leastRoom ? [] : [...top, ...serviceLines(state, paint, screen.width, room), ...nodes];
  const middle = outputLines(state, paint, screen.width, Math.max(0, whole - head.length));
  return [...head, ...middle, ...foot].slice(-screen.height).map((line) => cut(line, screen.width));
}

const leastRoom = 4;

/** As much of the line as fits; the cursor is always visible. */
function promptText({ before, after }: Line, width: number): string {
  return tail(before, width - 3) + after;
}

/** Column of the cursor, counted from 1. */
export function promptColumn({ before }: Line, width: number): number {
  return widthOf(tail(before, width - 3)) + 3;
}

/** At least half of `room` is left for output. */
function serviceLines(state: ViewState, paint: Painter, width: number, room: number): string[] {
  const several = new Set(state.services.map(({ metadata }) => metadata.namespace)).size > 1;
  const most = Math.max(1, Math.ceil(room / 2) - 1);
  const shown =
    state.services.length > most ? state.services.slice(0, Math.max(0, most - 1)) : state.services;
  const rows = shown.map((service) => ({
    service,
    title: titleOf(service, several),
    cells: cellsOf(service),
  }));
  const titles = rows.map(({ title: { name, properties } }) => name + properties);
  // Long names get more columns on a wide screen.
  const titleWidth = Math.min(longest(19, titles), Math.max(19, Math.floor(width / 4)));
  const widthsOf = (names: readonly (keyof Cells)[]) =>
    names.map((name) => ({
      name,
      width: longest(
        leastWidths[name],
        rows.map((row) => row.cells[name]),
      ),
    }));
  const roomLeft = (columns: ReturnType<typeof widthsOf>) =>
    width - columns.reduce((sum, each) => sum + each.width + 1, titleWidth + 1);
  // On a narrow screen the endpoints take precedence over the external addresses.
  const all = widthsOf(["address", "external", "port"]);
  const isOutside = rows.some((row) => row.cells.external !== "");
  const cells = isOutside && roomLeft(all) >= leastEndpoints ? all : widthsOf(["address", "port"]);
  const left = roomLeft(cells);
  const line = (title: string, textOf: (name: keyof Cells) => string, last: string) =>
    [padded(title, titleWidth), ...cells.map((each) => padded(textOf(each.name), each.width)), last].join(
      " ",
    );
  const legend = "ENDPOINTS (! unready, ↓ terminating)";
  return [
    paint.dim(line("SERVICE", (name) => headings[name], legend.length > left ? "ENDPOINTS" : legend)),
    ...rows.map(({ service, title, cells: texts }) =>
      line(titleText(title, titleWidth), (name) => texts[name], endpointText(service, state, paint, left)),
    ),
    ...(shown.length < state.services.length
      ? [paint.dim(`… and ${state.services.length - shown.length} more`)]
      : []),
  ];
}

type Cells = { readonly address: string; readonly external: string; readonly port: string };

const headings: Cells = { address: "CLUSTER-IP", external: "EXTERNAL-IP", port: "PORT" };
const leastWidths = { address: 11, external: 13, port: 12 } as const;
const leastEndpoints = 16;

function cellsOf(service: ApiObject): Cells {
  return {
    address: scalar(dig(service, "spec.clusterIP")) || "none",
    external: externalText(service),
    port: portText(service),
  };
}

/** The first external address, load balancers first, and the number of the rest. */
function externalText(service: ApiObject): string {
  const balancers = mapsIn(dig(service, "status.loadBalancer.ingress")).map(({ ip, hostname }) =>
    scalar(ip ?? hostname),
  );
  const others = dig(service, "spec.externalIPs");
  const all = [...balancers, ...(Array.isArray(others) ? others.map(scalar) : [])];
  const [first, ...more] = all.map(printableLine);
  if (first === undefined) return dig(service, "spec.type") === "LoadBalancer" ? "pending" : "";
  return more.length === 0 ? first : `${first} +${more.length}`;
}

function longest(least: number, texts: readonly string[]): number {
  return Math.max(least, ...texts.map(widthOf));
}

/** The output between two rules that show how many lines are above and below. */
function outputLines(state: ViewState, paint: Painter, width: number, room: number): string[] {
  const end = Math.max(0, state.output.length - state.scrolledLines);
  const lines = (from: number, to: number) =>
    state.output.slice(from, to).flatMap((line) => folded(line, width));
  const before = lines(0, end);
  const shown = before.slice(Math.max(0, before.length - room));
  const above = before.length - shown.length;
  const below = lines(end, state.output.length).length;
  return [
    paint.dim(rule(above > 0 ? `${count(above, "line")} above: PgUp` : "", width)),
    ...shown,
    ...Array<string>(room - shown.length).fill(""),
    paint.dim(rule(below > 0 ? `${count(below, "line")} below: PgDn` : "", width)),
  ];
}

/** A horizontal line with a label. */
function rule(word: string, width: number): string {
  const text = word === "" ? "" : `─ ${word} `;
  return text + "─".repeat(Math.max(0, width - text.length));
}

function count(number: number, word: string): string {
  return `${number} ${word}${number === 1 ? "" : "s"}`;
}

type Title = { readonly name: string; readonly properties: string };

function titleOf(service: ApiObject, withNamespace: boolean): Title {
  const { name, namespace } = service.metadata;
  const properties = [
    ...(dig(service, "spec.externalTrafficPolicy") === "Local" ? ["Local"] : []),
    ...(dig(service, "spec.sessionAffinity") === "ClientIP" ? ["sticky"] : []),
    ...(dig(service, "spec.trafficDistribution") === undefined ? [] : ["zone"]),
  ];
  return {
    name: withNamespace ? `${namespace}/${name}` : name,
    properties: properties.length === 0 ? "" : ` (${properties.join(",")})`,
  };
}

/** A long name is cut in the middle, because names often differ at the end. Its properties are dropped first. */
function titleText({ name, properties }: Title, width: number): string {
  if (name.length + properties.length <= width) return name + properties;
  const shown = properties.length <= width / 3 ? properties : "";
  const room = width - shown.length;
  if (name.length <= room) return name + shown;
  const end = Math.floor((room - 1) / 2);
  return `${name.slice(0, room - 1 - end)}…${name.slice(name.length - end)}${shown}`;
}

function endpointText(service: ApiObject, state: ViewState, paint: Painter, width: number): string {
  const { name, namespace } = service.metadata;
  const slices = state.slices.filter(
    ({ metadata }) =>
      metadata.labels?.["kubernetes.io/service-name"] === name && metadata.namespace === namespace,
  );
  // Both families list the same Pods; show one.
  const family = slices.some(({ addressType }) => addressType === "IPv4") ? "IPv4" : "IPv6";
  const labels = slices
    .filter(({ addressType }) => addressType === family)
    .flatMap(({ endpoints }) => (Array.isArray(endpoints) ? endpoints.filter(isMap) : []))
    .map((endpoint): Label => {
      const text = endpointName(endpoint);
      if (dig(endpoint, "conditions.terminating") === true)
        return { text: `${text}↓`, paint: paint.terminating };
      return dig(endpoint, "conditions.ready") === false
        ? { text: `${text}!`, paint: paint.bad }
        : { text, paint: paint.good };
    });
  return labels.length === 0 ? paint.bad(`none (${state.noEndpoints})`) : fitting(labels, width);
}

/** `web-1@a`; the address when the endpoint is not a Pod. */
function endpointName(endpoint: Readonly<Record<string, unknown>>): string {
  const address = Array.isArray(endpoint.addresses) ? scalar(endpoint.addresses[0]) : "";
  const node = scalar(endpoint.nodeName).replace("node-", "");
  const name = scalar(dig(endpoint, "targetRef.name")) || address;
  return printableLine(`${name}${node === "" ? "" : `@${node}`}`);
}

type Label = { readonly text: string; readonly paint: (text: string) => string };

/** As many as fit, and the number of the rest. */
function fitting(labels: readonly Label[], width: number): string {
  const room = (count: number) => width - (count === labels.length ? 0 : ` +${labels.length - count}`.length);
  const length = (count: number) =>
    labels.slice(0, count).reduce((sum, { text }) => sum + text.length + 1, 0) - 1;
  let count = labels.length;
  while (count > 1 && length(count) > room(count)) count--;
  const shown = labels.slice(0, count).map(({ text, paint }) => paint(text));
  return [...shown, ...(count < labels.length ? [`+${labels.length - count}`] : [])].join(" ");
}

/** The first port, and the number of the rest. */
function portText(service: ApiObject): string {
  const ports = dig(service, "spec.ports");
  const [first, ...more] = Array.isArray(ports) ? ports.filter(isMap) : [];
  if (first === undefined) return "none";
  const nodePort = first.nodePort === undefined ? "" : `:${scalar(first.nodePort)}`;
  const protocol = (scalar(first.protocol) || "tcp").toLowerCase();
  return `${scalar(first.port)}${nodePort}/${protocol}${more.length === 0 ? "" : ` +${more.length}`}`;
}

/** One line for each node, in columns. */
function nodeLines(state: ViewState, paint: Painter): string[] {
  const rows = state.nodes.map((node) => {
    const { name } = node.metadata;
    const cordoned = dig(node, "spec.unschedulable") === true ? paint.bad(" cordoned") : "";
    const sync = state.syncs.get(name);
    return {
      name: `${paint.bold(name)}${cordoned}`,
      pods: state.pods.filter((pod) => dig(pod, "spec.nodeName") === name).length,
      syncs: sync?.count ?? 0,
      last: sync === undefined ? "not synced yet" : `${ago(state.now - sync.at)}: ${syncText(sync.report)}`,
    };
  });
  const width = longest(
    0,
    rows.map(({ name }) => name),
  );
  const pods = countColumn(
    rows.map((row) => row.pods),
    "pod",
  );
  const syncs = countColumn(
    rows.map((row) => row.syncs),
    "sync",
  );
  return rows.map(
    (row, i) => `${padded(row.name, width)}  ${pods[i]}  ${paint.dim(`${syncs[i]}  ${row.last}`)}`,
  );
}

/** `1 pod`, `12 pods`, with the numbers aligned to the right and the words to the left. */
function countColumn(numbers: readonly number[], word: string): string[] {
  const digits = Math.max(...numbers.map((number) => String(number).length));
  return numbers.map((number) =>
    padded(
      count(number, word).padStart(digits + 1 + word.length + (number === 1 ? 0 : 1)),
      digits + 2 + word.length,
    ),
  );
}

function syncText({ trigger, changedPorts, operations, ms }: SyncReport): string {
  return `${trigger}, ${count(changedPorts, "port")}, ${count(operations, "operation")}, ${ms} ms`;
}

function ago(ms: number): string {
  return ms < 1000
    ? "now"
    : ms < 120_000
      ? `${Math.floor(ms / 1000)} s ago`
      : `${Math.floor(ms / 60_000)} min ago`;
}

type Painter = Record<"bold" | "dim" | "good" | "terminating" | "bad", (text: string) => string>;

function painter(colour: boolean): Painter {
  const code = (open: string) => (text: string) => (colour ? `\u001b[${open}m${text}\u001b[0m` : text);
  return { bold: code("1"), dim: code("2"), good: code("32"), terminating: code("33"), bad: code("31") };
}
