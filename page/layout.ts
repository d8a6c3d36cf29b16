// Where the boxes of the picture of a Service are: pure geometry.
import type { Path, PortJson } from "../src/page/json.ts";

export type Box = { readonly x: number; readonly y: number; readonly width: number; readonly height: number };

export type Shown = {
  /** Index of the endpoint; null: the box that stands for all that do not fit. */
  readonly endpoint: number | null;
  readonly box: Box;
  /** Why it gets no packets on this path; null: it does. */
  readonly reason: string | null;
  readonly hidden: number;
};

export type Layout = {
  readonly width: number;
  readonly height: number;
  /** Empty where there is no room: the senders are then a list above the picture. */
  readonly senders: readonly Box[];
  readonly frontends: readonly Box[];
  /** The box that stands for Frontends that are not listed. */
  readonly moreFrontends: Box | null;
  readonly endpoints: readonly Shown[];
};

const boxHeight = 42;
const gap = 12;
const mostChosen = 10;
const mostLeftOut = 5;

export function layoutOf(port: PortJson, path: Path, senders: number, width: number): Layout {
  const isCompact = width < 520;
  const shown = endpointsOf(port, path);
  const more = port.moreFrontends > 0 ? 1 : 0;
  const rows = Math.max(isCompact ? 0 : senders, port.frontends.length + more, shown.length, 1);
  const height = rows * (boxHeight + gap) + gap;
  const column = (x: number, each: number, of: number): Box[] =>
    Array.from({ length: of }, (_, i) => ({ x, y: top(i, of, height), width: each, height: boxHeight }));
  const [first, second, third] = isCompact
    ? [0, Math.floor(width * 0.42), Math.floor(width * 0.46)]
    : [118, Math.min(220, Math.floor(width * 0.28)), Math.min(250, Math.floor(width * 0.33))];
  const middle = isCompact ? 1 : first + (width - 2 - first - second - third) / 2;
  const frontends = column(middle, second, port.frontends.length + more);
  const boxes = column(width - third - 1, third, shown.length);
  return {
    width,
    height,
    senders: isCompact ? [] : column(1, first, senders),
    frontends: frontends.slice(0, port.frontends.length),
    moreFrontends: frontends[port.frontends.length] ?? null,
    endpoints: shown.map((each, i) => ({ ...each, box: boxes[i]! })),
  };
}

/** Chosen ones first, then those left out; what does not fit is counted. */
function endpointsOf(port: PortJson, path: Path): Omit<Shown, "box">[] {
  const chosen = path.chosen.slice(0, mostChosen);
  const leftOut = path.leftOut.slice(0, mostLeftOut);
  const known = new Set([...chosen, ...leftOut.map(({ endpoint }) => endpoint)]);
  // Where nothing is forwarded, endpoints may be neither.
  const others =
    path.outcome === "forward"
      ? []
      : port.endpoints
          .map((_, i) => i)
          .filter((i) => !known.has(i))
          .slice(0, mostLeftOut);
  const hidden = port.endpoints.length + port.moreEndpoints - known.size - others.length;
  return [
    ...chosen.map((endpoint) => ({ endpoint, reason: null, hidden: 0 })),
    ...leftOut.map(({ endpoint, reason }) => ({ endpoint, reason, hidden: 0 })),
    ...others.map((endpoint) => ({ endpoint, reason: "not used", hidden: 0 })),
    ...(hidden > 0 ? [{ endpoint: null, reason: null, hidden }] : []),
  ];
}

function top(i: number, of: number, height: number): number {
  const used = of * (boxHeight + gap) - gap;
  return Math.round((height - used) / 2 + i * (boxHeight + gap));
}

/** A curve from the right edge of one box to the left edge of another. */
export function curve(from: Box, to: Box): string {
  const [x1, y1] = [from.x + from.width, from.y + from.height / 2];
  const [x2, y2] = [to.x, to.y + to.height / 2];
  const bend = (x2 - x1) / 2;
  return `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
}
