// A strict reader of Prometheus' text format 0.0.4, for tests: throws at the first line a scraper would refuse.

export type ParsedMetric = {
  readonly type: "counter" | "gauge" | "histogram" | "summary" | "untyped";
  readonly help: string;
  readonly series: readonly ParsedSeries[];
};

export type ParsedSeries = {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
};

const suffixesOf: Readonly<Record<ParsedMetric["type"], readonly string[]>> = {
  counter: [""],
  gauge: [""],
  untyped: [""],
  histogram: ["_bucket", "_sum", "_count"],
  summary: ["", "_sum", "_count"],
};

export function parsePrometheus(text: string): Map<string, ParsedMetric> {
  if (text !== "" && !text.endsWith("\n")) throw new Error("the last line does not end");
  const metrics = new Map<string, { type: ParsedMetric["type"]; help: string; series: ParsedSeries[] }>();
  let current: string | null = null;
  for (const line of text.split("\n").slice(0, -1)) {
    const help = /^# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) (.*)$/.exec(line);
    const type = /^# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge|histogram|summary|untyped)$/.exec(line);
    if (help !== null) {
      if (metrics.has(help[1]!)) throw new Error(`${help[1]} appears twice`);
      if (/\\(?![\\n])/.test(help[2]!.replace(/\\\\/g, ""))) throw new Error(`bad escape: ${line}`);
      current = help[1]!;
      metrics.set(current, { type: "untyped", help: help[2]!, series: [] });
    } else if (type !== null) {
      if (type[1] !== current) throw new Error(`TYPE of ${type[1]} below HELP of ${current}`);
      metrics.get(current)!.type = type[2] as ParsedMetric["type"];
    } else {
      const series = parseSeries(line);
      const metric = current === null ? undefined : metrics.get(current);
      const suffixes = suffixesOf[metric?.type ?? "untyped"];
      if (metric === undefined || !suffixes.some((suffix) => series.name === current + suffix)) {
        throw new Error(`${series.name} is listed under ${current}`);
      }
      metric.series.push(series);
    }
  }
  for (const [name, metric] of metrics) checkMetric(name, metric);
  return metrics;
}

function parseSeries(line: string): ParsedSeries {
  const match = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/.exec(line);
  if (match === null) throw new Error(`not a sample: ${line}`);
  const labels: Record<string, string> = {};
  let rest = match[2] ?? "";
  while (rest !== "") {
    const pair = /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)/.exec(rest);
    if (pair === null) throw new Error(`bad labels: ${line}`);
    if (pair[1]! in labels) throw new Error(`label ${pair[1]} twice: ${line}`);
    labels[pair[1]!] = pair[2]!.replace(/\\(.)/g, (_, c) => (c === "n" ? "\n" : c));
    rest = rest.slice(pair[0].length);
  }
  return { name: match[1]!, labels, value: parseValue(match[3]!) };
}

function parseValue(text: string): number {
  if (text === "+Inf") return Infinity;
  if (text === "-Inf") return -Infinity;
  if (text !== "NaN" && !/^-?[0-9]+(\.[0-9]+)?(e[-+][0-9]+)?$/.test(text))
    throw new Error(`not a number: ${text}`);
  return Number(text);
}

function checkMetric(name: string, { type, series }: ParsedMetric): void {
  const seen = new Set<string>();
  for (const one of series) {
    const key = `${one.name}${JSON.stringify(one.labels, Object.keys(one.labels).sort())}`;
    if (seen.has(key)) throw new Error(`${name} has a series twice: ${key}`);
    seen.add(key);
  }
  if (type !== "histogram") return;
  let last = { le: -Infinity, count: 0 };
  for (const one of series) {
    if (one.name === `${name}_bucket`) {
      const le = parseValue(one.labels.le!);
      if (le <= last.le || one.value < last.count) throw new Error(`${name}: buckets are not in order`);
      last = { le, count: one.value };
    } else if (one.name === `${name}_count`) {
      if (last.le !== Infinity || last.count !== one.value)
        throw new Error(`${name}: count is not the last bucket`);
      last = { le: -Infinity, count: 0 };
    }
  }
}
