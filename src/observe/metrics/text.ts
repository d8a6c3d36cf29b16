// Prints metrics in Prometheus' text format 0.0.4, byte for byte as its Go client would.
import type { Sample } from "./instruments.ts";

export type MetricText = {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly labels: readonly string[];
  readonly samples: readonly Sample[];
};

export const textContentType = "text/plain; version=0.0.4; charset=utf-8";

/** Metrics sorted by name, their series by label values; a metric without series is left out. */
export function printMetrics(metrics: readonly MetricText[]): string {
  return [...metrics]
    .filter((metric) => metric.samples.length > 0)
    .sort((a, b) => compare(a.name, b.name))
    .map(printMetric)
    .join("");
}

function printMetric(metric: MetricText): string {
  // The Go client prints labels in the order of their names, not in the order they were declared.
  const order = metric.labels.map((_, i) => i).sort((a, b) => compare(metric.labels[a]!, metric.labels[b]!));
  const lines = [`# HELP ${metric.name} ${escapeHelp(metric.help)}`, `# TYPE ${metric.name} ${metric.type}`];
  for (const sample of sortedSeries(metric.samples, order)) {
    lines.push(
      `${metric.name}${sample.suffix}${labelText(metric, sample, order)} ${formatFloat(sample.value)}`,
    );
  }
  return `${lines.join("\n")}\n`;
}

/** Array.sort is stable: the buckets of one series stay together and in order. */
function sortedSeries(samples: readonly Sample[], order: readonly number[]): Sample[] {
  return [...samples].sort((a, b) => {
    for (const i of order) {
      const difference = compare(a.labels[i]!, b.labels[i]!);
      if (difference !== 0) return difference;
    }
    return 0;
  });
}

function labelText(metric: MetricText, sample: Sample, order: readonly number[]): string {
  const pairs = order.map((i) => `${metric.labels[i]}="${escapeLabel(sample.labels[i]!)}"`);
  if (sample.le !== null) pairs.push(`le="${formatFloat(sample.le)}"`);
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

/** Go's strconv 'g' with the fewest digits: an exponent below 1e-04 and from 1e+06 on. */
export function formatFloat(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf";
  if (value === 0) return "0";
  const [mantissa, exponentText] = value.toExponential().split("e");
  const exponent = Number(exponentText);
  if (exponent >= -4 && exponent < 6) return String(value);
  const sign = exponent < 0 ? "-" : "+";
  return `${mantissa}e${sign}${String(Math.abs(exponent)).padStart(2, "0")}`;
}

function escapeHelp(text: string): string {
  return text.replace(/\\/g, "\\\\").replace(/\n/g, "\\n");
}

function escapeLabel(text: string): string {
  return escapeHelp(text).replace(/"/g, '\\"');
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
