// Makes the metrics of a table live, decides which of them are shown, and prints them.
import type { ModeName } from "../../config/modes.ts";
import type { Clock } from "../clock.ts";
import type { Definition, Stability } from "./define.ts";
import {
  type Collected,
  type Counter,
  counterVector,
  type Gauge,
  gaugeVector,
  type Histogram,
  histogramVector,
  type Labels,
  type Sample,
  type Vector,
} from "./instruments.ts";
import { type MetricText, printMetrics } from "./text.ts";

export type MetricsSettings = {
  readonly mode: ModeName;
  /** Names of feature gates that are on. */
  readonly gates: ReadonlySet<string>;
  /** Version of the Kubernetes whose kube-proxy we replace: `1.37`. */
  readonly kubernetes: string;
  /** `showHiddenMetricsForVersion` is set. */
  readonly showHidden: boolean;
};

/** A series of a metric whose value lives elsewhere. */
export type Reading<L extends string> = { readonly labels: Labels<L>; readonly value: number };

/** Sets where a `read` metric gets its values from; without readings the metric is absent. */
export type ReadFrom<L extends string> = {
  readonly from: (read: () => readonly Reading<L>[] | Promise<readonly Reading<L>[]>) => void;
};

type Cell<C, L extends string> = [L] extends [never] ? C : Vector<L, C>;

type Instrument<D> =
  D extends Definition<"counter", infer L>
    ? Cell<Counter, L>
    : D extends Definition<"gauge", infer L>
      ? Cell<Gauge, L>
      : D extends Definition<"histogram", infer L>
        ? Cell<Histogram, L>
        : D extends Definition<"readCounter" | "readGauge", infer L>
          ? ReadFrom<L>
          : never;

export type Instruments<Table> = { readonly [Key in keyof Table]: Instrument<Table[Key]> };

export type Registry<Table> = {
  readonly metrics: Instruments<Table>;
  /** Definitions of what is shown. */
  readonly shown: readonly Definition[];
  /** Definitions of what is not shown because it is deprecated. */
  readonly hidden: readonly Definition[];
  /** The text of `/metrics`. A metric that cannot be read in time is left out. */
  readonly print: () => Promise<string>;
};

/** Longest time one metric may take to be read. */
const readLimitMs = 2000;

/** Every metric of the table can be written to; only those that belong to the mode are shown. */
export function openRegistry<Table extends Record<string, Definition>>(
  table: Table,
  settings: MetricsSettings,
  clock: Clock,
): Registry<Table> {
  const metrics: Record<string, unknown> = {};
  const shown: Definition[] = [];
  const hidden: Definition[] = [];
  const printed: (() => Promise<MetricText>)[] = [];
  for (const [key, definition] of Object.entries(table)) {
    const live = openInstrument(definition, clock);
    metrics[key] = live.instrument;
    if (!inScope(definition, settings)) continue;
    if (isHidden(definition, settings.kubernetes) && !settings.showHidden) {
      hidden.push(definition);
      continue;
    }
    shown.push(definition);
    printed.push(async () => ({ ...textOf(definition), samples: await live.samples() }));
  }
  return {
    metrics: metrics as Instruments<Table>,
    shown,
    hidden,
    print: async () => printMetrics(await Promise.all(printed.map((metric) => metric()))),
  };
}

function inScope(definition: Definition, settings: MetricsSettings): boolean {
  const { modes, gate } = definition.scope;
  return modes.includes(settings.mode) && (gate === null || settings.gates.has(gate));
}

const deprecationMinors: Readonly<Record<Stability, number>> = { ALPHA: 0, BETA: 1, STABLE: 3 };

/** Whether a deprecated metric's time is up in this version. */
export function isHidden(definition: Definition, kubernetes: string): boolean {
  if (definition.deprecatedSince === undefined || definition.stability === null) return false;
  const [major = 0, minor = 0] = definition.deprecatedSince.split(".").map(Number);
  const [currentMajor = 0, currentMinor = 0] = kubernetes.split(".").map(Number);
  if (major !== currentMajor) return major < currentMajor;
  return minor + deprecationMinors[definition.stability] <= currentMinor;
}

/** Help text with its marks, and the type for Prometheus. */
function textOf(definition: Definition): Omit<MetricText, "samples"> {
  const { name, labels, stability, deprecatedSince } = definition;
  const deprecated = deprecatedSince === undefined ? "" : `(Deprecated since ${deprecatedSince}) `;
  const help = `${stability === null ? "" : `[${stability}] `}${deprecated}${definition.help}`;
  return { name, labels, help, type: prometheusType(definition) };
}

export function prometheusType(definition: Definition): MetricText["type"] {
  if (definition.type === "histogram") return "histogram";
  return definition.type === "counter" || definition.type === "readCounter" ? "counter" : "gauge";
}

type Live = {
  readonly instrument: unknown;
  readonly samples: () => readonly Sample[] | Promise<readonly Sample[]>;
};

function openInstrument(definition: Definition, clock: Clock): Live {
  if (definition.type.startsWith("read")) return openReading(definition, clock);
  const opened = openVector(definition);
  // Without labels there is one series, and it is there from the start.
  if (definition.labels.length === 0) return { ...opened, instrument: opened.instrument.with({}) };
  return opened;
}

function openVector(definition: Definition): Collected<Vector<string, unknown>> {
  if (definition.type === "histogram") return histogramVector(definition.labels, definition.buckets);
  return definition.type === "counter" ? counterVector(definition.labels) : gaugeVector(definition.labels);
}

function openReading(definition: Definition, clock: Clock): Live {
  let read: Parameters<ReadFrom<string>["from"]>[0] = () => [];
  return {
    instrument: {
      from(next: typeof read) {
        read = next;
      },
    },
    async samples() {
      const readings = await inTime(async () => read(), clock);
      return readings.map(({ labels, value }) => ({
        suffix: "",
        labels: definition.labels.map((name) => labels[name]!),
        le: null,
        value,
      }));
    },
  };
}

/** What cannot be read, or not in time, is nothing: the other metrics should not suffer. */
function inTime<T>(read: () => Promise<readonly T[]>, clock: Clock): Promise<readonly T[]> {
  return new Promise((resolve) => {
    const cancel = clock.after(readLimitMs, () => resolve([]));
    read()
      .then(resolve, () => resolve([]))
      .finally(cancel);
  });
}
