// The live view as text: Services with their endpoints, nodes with their Syncs, what was said, and a prompt. Pure.
import { type ApiObject, dig, isMap, scalar } from "./api/object.ts";
import type { SyncNews } from "./daemon.ts";

export type ViewState = {
  readonly mode: string;
  readonly url: string;
  readonly kubeconfig: string;
  readonly services: readonly ApiObject[];
  readonly pods: readonly ApiObject[];
  readonly slices: readonly ApiObject[];
  readonly nodes: readonly ApiObject[];
  /** The last Sync of each node, and how many there were. */
  readonly syncs: ReadonlyMap<
    string,
    { readonly news: SyncNews; readonly count: number; readonly at: number }
  >;
  /** Everything said so far, oldest first. */
  readonly output: readonly string[];
  readonly input: string;
  readonly busy: boolean;
  readonly now: number;
};

export type Screen = { readonly width: number; readonly height: number; readonly colour: boolean };

/** Exactly `height` lines, none wider than `width`. */
export function renderView(state: ViewState, screen: Screen): string[] {
  const paint = painter(screen.colour);
  const head = [
    `${paint.bold("Turnout playground")}  ${state.mode} mode, ${state.nodes.length} nodes`,
    paint.dim(`kubectl --kubeconfig ${state.kubeconfig} get services`),
    "",
    paint.dim(columns(["SERVICE", "CLUSTER-IP", "PORT", "ENDPOINTS (! unready, ↓ ending)"])),
    ...state.services.map((service) => serviceLine(service, state, paint, screen.width)),
    "",
    ...state.nodes.map((node) => nodeLine(node, state, paint)),
    paint.dim("─".repeat(screen.width)),
  ];
  const hint = "Enter sends samples · send explain scale stop kill drain flush help quit";
  const foot = [
    paint.dim("─".repeat(screen.width)),
    paint.dim(hint),
    `${state.busy ? "…" : ">"} ${state.input}`,
  ];
  const room = Math.max(0, screen.height - head.length - foot.length);
  const said = state.output.flatMap((line) => folded(line, screen.width)).slice(-room || state.output.length);
  const middle = [...said, ...Array<string>(Math.max(0, room - said.length)).fill("")];
  return [...head, ...middle.slice(0, room), ...foot]
    .slice(-screen.height)
    .map((line) => cut(line, screen.width));
}

function columns([a = "", b = "", c = "", d = ""]: readonly string[]): string {
  return `${a.padEnd(19)} ${b.padEnd(13)} ${c.padEnd(14)} ${d}`;
}

function serviceLine(service: ApiObject, state: ViewState, paint: Painter, width: number): string {
  const { name, namespace } = service.metadata;
  const endpoints = state.slices
    .filter(
      (slice) =>
        slice.metadata.labels?.["kubernetes.io/service-name"] === name &&
        slice.metadata.namespace === namespace &&
        slice.addressType === "IPv4",
    )
    .flatMap((slice) => (Array.isArray(slice.endpoints) ? slice.endpoints.filter(isMap) : []));
  const ready = endpoints.filter((endpoint) => dig(endpoint, "conditions.ready") === true);
  const labels = endpoints.map((endpoint): Label => {
    const text = `${String(dig(endpoint, "targetRef.name"))}@${String(endpoint.nodeName).replace("node-", "")}`;
    if (dig(endpoint, "conditions.terminating") === true) return { text: `${text}↓`, paint: paint.ending };
    return ready.includes(endpoint) ? { text, paint: paint.good } : { text: `${text}!`, paint: paint.bad };
  });
  const traits = [
    ...(dig(service, "spec.externalTrafficPolicy") === "Local" ? ["Local"] : []),
    ...(dig(service, "spec.sessionAffinity") === "ClientIP" ? ["sticky"] : []),
    ...(dig(service, "spec.trafficDistribution") === undefined ? [] : ["zone"]),
  ];
  const nobody = state.mode === "userspace" ? "nobody: closed" : "nobody: refused";
  const shown = labels.length === 0 ? paint.bad(nobody) : fitting(labels, width - columns([]).length);
  const title = `${name}${traits.length === 0 ? "" : ` (${traits.join(",")})`}`;
  return columns([title, String(dig(service, "spec.clusterIP")), portText(service), shown]);
}

type Label = { readonly text: string; readonly paint: (text: string) => string };

/** As many as there is room for, and how many more there are. */
function fitting(labels: readonly Label[], width: number): string {
  const room = (count: number) => width - (count === labels.length ? 0 : ` +${labels.length - count}`.length);
  const length = (count: number) =>
    labels.slice(0, count).reduce((sum, { text }) => sum + text.length + 1, 0) - 1;
  let count = labels.length;
  while (count > 1 && length(count) > room(count)) count--;
  const shown = labels.slice(0, count).map(({ text, paint }) => paint(text));
  return [...shown, ...(count < labels.length ? [`+${labels.length - count}`] : [])].join(" ");
}

function portText(service: ApiObject): string {
  const ports = dig(service, "spec.ports");
  const first = Array.isArray(ports) ? ports.find(isMap) : undefined;
  if (first === undefined) return "";
  const nodePort = first.nodePort === undefined ? "" : `:${scalar(first.nodePort)}`;
  return `${scalar(first.port)}${nodePort}/${scalar(first.protocol).toLowerCase()}`;
}

function nodeLine(node: ApiObject, state: ViewState, paint: Painter): string {
  const { name } = node.metadata;
  const pods = state.pods.filter((pod) => dig(pod, "spec.nodeName") === name).length;
  const cordoned = dig(node, "spec.unschedulable") === true ? paint.bad(" drained") : "";
  const sync = state.syncs.get(name);
  const last =
    sync === undefined
      ? "not synced yet"
      : `${sync.count} syncs, last ${ago(state.now - sync.at)}: ${sync.news.trigger}, ${sync.news.changedPorts} ports, ${sync.news.operations} operations, ${sync.news.ms} ms`;
  return `${paint.bold(name)}${cordoned}  ${pods} pods  ${paint.dim(last)}`;
}

function ago(ms: number): string {
  return ms < 1000
    ? "now"
    : ms < 120_000
      ? `${Math.floor(ms / 1000)} s ago`
      : `${Math.floor(ms / 60_000)} min ago`;
}

type Painter = Record<"bold" | "dim" | "good" | "ending" | "bad", (text: string) => string>;

function painter(colour: boolean): Painter {
  const code = (open: string) => (text: string) => (colour ? `\u001b[${open}m${text}\u001b[0m` : text);
  return { bold: code("1"), dim: code("2"), good: code("32"), ending: code("33"), bad: code("31") };
}

function folded(line: string, width: number): string[] {
  if (line.length <= width) return [line];
  const parts: string[] = [];
  for (let rest = line; rest !== ""; ) {
    const space = rest.length > width ? rest.lastIndexOf(" ", width) : -1;
    const at = space > width / 2 ? space : width;
    parts.push(rest.slice(0, at));
    rest = rest.slice(at).trimStart() === "" ? "" : `  ${rest.slice(at).trimStart()}`;
  }
  return parts;
}

const esc = "\u001b";
const colourCode = new RegExp(`(${esc}\\[\\d+m)`);

/** Cuts to a width, not counting colours. */
function cut(line: string, width: number): string {
  let seen = 0;
  let result = "";
  for (const part of line.split(colourCode)) {
    if (part.startsWith("\u001b")) result += part;
    else {
      const room = Math.max(0, width - seen);
      result += part.length > room ? `${part.slice(0, Math.max(0, room - 1))}${room > 0 ? "…" : ""}` : part;
      seen += part.length;
    }
  }
  return result;
}
