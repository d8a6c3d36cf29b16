// The picture of a Service: senders, frontends, endpoints, and the way of the selected packets between them.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { FrontendJson, Path, PortJson, Sender } from "../src/page/json.ts";
import { count, percent } from "./format.ts";
import { type Box, curve, type Layout, layoutOf, type Shown } from "./layout.ts";
import { outcomeText } from "./why.tsx";

export type PictureProps = {
  readonly port: PortJson;
  /** Names of pods by their address. */
  readonly names: Readonly<Record<string, string>>;
  /** Index of the path. */
  readonly selected: number;
  /** Of a picture with one path: who sends. */
  readonly sender?: string;
  readonly hrefOfPath: (path: number) => string;
  /** How many clients are pinned to an endpoint, by its place. */
  readonly pinned?: ReadonlyMap<string, number>;
};

const senderNames: Readonly<Record<Sender, string>> = {
  pod: "pods here",
  node: "this node",
  outside: "outside",
};

const kindNames = {
  clusterIP: "cluster IP",
  loadBalancerIP: "load balancer",
  externalIP: "external IP",
  nodePort: "node port",
} as const;

export function Picture({
  port,
  names,
  selected,
  sender: named,
  hrefOfPath,
  pinned = nothing,
}: PictureProps) {
  const frame = useRef<HTMLDivElement>(null);
  const width = useWidth(frame);
  const path = port.paths[selected]!;
  const senders = [...new Set(port.paths.map(({ sender }) => sender))];
  const layout = layoutOf(port, path, senders.length, width);
  const pathOf = (sender: Sender, frontend: number) =>
    port.paths.findIndex((each) => each.sender === sender && each.frontend === frontend);
  const nameOf = (sender: Sender) => named ?? senderNames[sender];
  const common = { port, layout, senders, path, pathOf, nameOf, hrefOfPath };
  return (
    <div class="picture" ref={frame}>
      {layout.senders.length === 0 && (
        <nav class="senders" aria-label="Sender">
          {senders.map((sender) => (
            <a
              key={sender}
              href={hrefOfPath(pathOf(sender, path.frontend))}
              aria-current={sender === path.sender ? "true" : undefined}
            >
              {nameOf(sender)}
            </a>
          ))}
        </nav>
      )}
      <svg
        width={width}
        height={layout.height}
        viewBox={`0 0 ${width} ${layout.height}`}
        role="group"
        aria-label={`From ${nameOf(path.sender)} to ${port.frontends[path.frontend]!.place}: ${outcomeText(path)}`}
      >
        <Edges {...common} />
        <Senders {...common} />
        <Frontends {...common} />
        {layout.moreFrontends !== null && <More box={layout.moreFrontends} count={port.moreFrontends} />}
        {layout.endpoints.map((shown, i) => (
          <EndpointBox key={i} shown={shown} port={port} path={path} names={names} pinned={pinned} />
        ))}
        {layout.endpoints.length === 0 && (
          <text class="dim" x={width - 150} y={layout.height / 2}>
            no endpoints
          </text>
        )}
      </svg>
    </div>
  );
}

const nothing: ReadonlyMap<string, number> = new Map();

/** That of the element, as it changes. */
function useWidth(frame: { current: HTMLDivElement | null }): number {
  const [width, setWidth] = useState(700);
  useLayoutEffect(() => {
    const measure = () => setWidth(Math.max(280, Math.floor(frame.current?.clientWidth ?? 700) - 24));
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(frame.current!);
    return () => observer.disconnect();
  }, []);
  return width;
}

type PartProps = {
  readonly port: PortJson;
  readonly layout: Layout;
  readonly senders: readonly Sender[];
  readonly path: Path;
  readonly pathOf: (sender: Sender, frontend: number) => number;
  readonly nameOf: (sender: Sender) => string;
  readonly hrefOfPath: (path: number) => string;
};

function Edges({ port, layout, senders, path, pathOf }: PartProps) {
  const isSelected = (sender: Sender, frontend: number) =>
    sender === path.sender && frontend === path.frontend;
  const approaches = layout.senders.flatMap((from, i) =>
    layout.frontends.map((to, frontend) => ({ from, to, sender: senders[i]!, frontend })),
  );
  const ordered = [
    ...approaches.filter(({ sender, frontend }) => !isSelected(sender, frontend)),
    ...approaches.filter(({ sender, frontend }) => isSelected(sender, frontend)),
  ];
  const start = layout.frontends[path.frontend]!;
  return (
    <g class="edges" aria-hidden="true">
      {ordered.map(({ from, to, sender, frontend }) => {
        const outcome = port.paths[pathOf(sender, frontend)]?.outcome;
        const tone = outcome === "forward" || outcome === "pass" ? "" : " bad";
        const strength = isSelected(sender, frontend) ? " on" : "";
        return (
          <path key={`${sender} ${frontend}`} d={curve(from, to)} class={`approach${tone}${strength}`} />
        );
      })}
      {layout.endpoints.map(({ box, reason, endpoint }, i) => (
        <path
          key={i}
          d={curve(start, box)}
          class={reason !== null ? "excluded" : "chosen"}
          stroke-width={reason !== null || endpoint === null ? 1.5 : thickness(path.candidates)}
        />
      ))}
    </g>
  );
}

/** Thick for the only endpoint, thin for one of many. */
function thickness(candidates: number): number {
  return Math.max(1.5, Math.min(6, 9 / Math.max(1, candidates) + 1.5));
}

function Senders({ layout, senders, path, pathOf, nameOf, hrefOfPath }: PartProps) {
  return (
    <g>
      {layout.senders.map((box, i) => {
        const sender = senders[i]!;
        const isOn = sender === path.sender;
        return (
          <a
            key={sender}
            href={hrefOfPath(pathOf(sender, path.frontend))}
            aria-current={isOn ? "true" : undefined}
          >
            <Frame box={box} tone={isOn ? "on" : ""} />
            <text x={box.x + 12} y={box.y + 26}>
              {fitted(nameOf(sender), box.width - 20)}
            </text>
          </a>
        );
      })}
    </g>
  );
}

function Frontends({ port, layout, path, pathOf, hrefOfPath }: PartProps) {
  return (
    <g>
      {layout.frontends.map((box, i) => {
        const frontend = port.frontends[i]!;
        const index = pathOf(path.sender, i);
        const { outcome } = port.paths[index]!;
        const isOn = i === path.frontend;
        const isRefused = outcome !== "forward" && outcome !== "pass";
        return (
          <a key={frontend.place} href={hrefOfPath(index)} aria-current={isOn ? "true" : undefined}>
            <Frame box={box} tone={`${isOn ? "on" : ""}${isRefused ? " bad" : ""}`} />
            <text class="mono" x={box.x + 12} y={box.y + 18}>
              {fitted(frontend.place, box.width - 20)}
            </text>
            <text class={isRefused ? "reason" : "dim"} x={box.x + 12} y={box.y + 34}>
              {fitted(frontendText(frontend, isRefused ? outcome : null), box.width - 20, 6)}
            </text>
            <title>{`${frontend.kind} ${frontend.place}${frontend.allowed === null ? "" : `, allowed: ${frontend.allowed.join(", ")}`}`}</title>
          </a>
        );
      })}
    </g>
  );
}

function frontendText({ kind, allowed }: FrontendJson, refusal: Path["outcome"] | null): string {
  if (refusal !== null) return `${kindNames[kind]}: ${refusal}`;
  return allowed === null ? kindNames[kind] : `${kindNames[kind]} · ${count(allowed.length, "source range")}`;
}

function EndpointBox({
  shown,
  port,
  path,
  names,
  pinned,
}: {
  readonly shown: Shown;
  readonly port: PortJson;
  readonly path: Path;
  readonly names: PictureProps["names"];
  readonly pinned: ReadonlyMap<string, number>;
}) {
  const { box, reason, endpoint, hidden } = shown;
  if (endpoint === null) return <More box={box} count={hidden} />;
  const { endpoint: place, node, state, here } = port.endpoints[endpoint]!;
  const name = names[place.slice(0, place.lastIndexOf(":")).replace(/^\[|\]$/g, "")];
  const where = [name, here ? `${node}, here` : node].filter(Boolean).join(" · ");
  const text = reason ?? `${percent(1 / path.candidates)}${where === "" ? "" : ` · ${where}`}`;
  return (
    <g>
      <Frame box={box} tone={reason === null ? "" : "faint"} />
      <text class={reason === null ? "mono" : "mono dim"} x={box.x + 12} y={box.y + 18}>
        {fitted(place, box.width - 20)}
      </text>
      {pinned.has(place) && (
        <text class="sticky" x={box.x + box.width - 10} y={box.y + 18} text-anchor="end">
          {pinned.get(place)} sticky
        </text>
      )}
      <text class={reason === null ? "share" : "reason"} x={box.x + 12} y={box.y + 34}>
        {fitted(text, box.width - 20, 6.2)}
      </text>
      <title>{`${place}${node === "" ? "" : ` on ${node}`}, ${state}${reason === null ? "" : `: ${reason}`}`}</title>
    </g>
  );
}

/** Stands for what is not drawn. */
function More({ box, count: hidden }: { readonly box: Box; readonly count: number }) {
  return (
    <g>
      <Frame box={box} tone="faint" />
      <text class="dim" x={box.x + 12} y={box.y + 26}>
        and {hidden.toLocaleString("en")} more
      </text>
    </g>
  );
}

function Frame({ box, tone }: { readonly box: Box; readonly tone: string }) {
  return <rect class={`box ${tone}`} x={box.x} y={box.y} width={box.width} height={box.height} rx="8" />;
}

/** Shortened where it does not fit; `each` is the width of a character. */
function fitted(text: string, width: number, each = 7): string {
  const most = Math.max(4, Math.floor(width / each));
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}
