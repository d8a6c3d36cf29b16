// Draws figures over cluster sizes as an SVG: one small chart for each figure, both axes logarithmic.

export type Series = { readonly name: string; readonly colour: string; readonly points: readonly Point[] };
export type Point = { readonly x: number; readonly y: number };
export type Chart = { readonly title: string; readonly unit: string; readonly series: readonly Series[] };

const width = 340;
const height = 240;
const margin = { left: 56, right: 14, top: 34, bottom: 34 };

export function drawCharts(charts: readonly Chart[], columns = 2): string {
  const rows = Math.ceil(charts.length / columns);
  const cells = charts.map(
    (chart, i) =>
      `<g transform="translate(${(i % columns) * width} ${Math.floor(i / columns) * height})">${draw(chart)}</g>`,
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${columns * width} ${rows * height}" font-family="sans-serif" font-size="11"><title>Turnout beside kube-proxy</title>`,
    `<rect width="100%" height="100%" fill="#fff"/>`,
    ...cells,
    "</svg>\n",
  ].join("\n");
}

function draw({ title, unit, series }: Chart): string {
  const points = series.flatMap((one) => one.points);
  if (points.length === 0) return "";
  const x = logScale(
    points.map((p) => p.x),
    margin.left,
    width - margin.right,
  );
  const y = logScale(
    points.map((p) => p.y),
    height - margin.bottom,
    margin.top,
  );
  return [
    `<text x="${margin.left}" y="18" font-weight="bold">${title} (${unit})</text>`,
    ...x.ticks.map((t) => gridLine(x.at(t), margin.top, x.at(t), height - margin.bottom)),
    ...x.ticks.map((t) => `<text x="${x.at(t)}" y="${height - 18}" text-anchor="middle">${shown(t)}</text>`),
    ...y.ticks.map((t) => gridLine(margin.left, y.at(t), width - margin.right, y.at(t))),
    ...y.ticks.map(
      (t) => `<text x="${margin.left - 6}" y="${y.at(t) + 4}" text-anchor="end">${shown(t)}</text>`,
    ),
    `<text x="${width - margin.right}" y="${height - 4}" text-anchor="end" fill="#666">Services</text>`,
    ...series.flatMap((one, i) => [
      `<polyline fill="none" stroke="${one.colour}" stroke-width="2" points="${one.points.map((p) => `${x.at(p.x).toFixed(1)},${y.at(p.y).toFixed(1)}`).join(" ")}"/>`,
      ...one.points.map(
        (p) =>
          `<circle cx="${x.at(p.x).toFixed(1)}" cy="${y.at(p.y).toFixed(1)}" r="3" fill="${one.colour}"/>`,
      ),
      `<text x="${margin.left + 8 + 90 * i}" y="${height - 4}" fill="${one.colour}">${one.name}</text>`,
    ]),
  ].join("\n");
}

function gridLine(x1: number, y1: number, x2: number, y2: number): string {
  return `<line x1="${x1.toFixed(1)}" y1="${y1.toFixed(1)}" x2="${x2.toFixed(1)}" y2="${y2.toFixed(1)}" stroke="#e4e4e4"/>`;
}

function logScale(
  values: readonly number[],
  from: number,
  to: number,
): { at(v: number): number; ticks: number[] } {
  const low = Math.floor(Math.log10(Math.min(...values)));
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...values))));
  return {
    at: (v) => from + ((Math.log10(v) - low) / (high - low)) * (to - from),
    ticks: Array.from({ length: high - low + 1 }, (_, i) => 10 ** (low + i)),
  };
}

function shown(value: number): string {
  return value >= 1 ? value.toLocaleString("en") : String(Number(value.toPrecision(1)));
}
