// Counters, gauges and histograms with fixed labels: the values of one metric each.

/** A value for each label of a metric. */
export type Labels<L extends string> = Readonly<Record<L, string>>;

export type Counter = { readonly add: (amount?: number) => void };
export type Gauge = { readonly set: (value: number) => void; readonly add: (amount: number) => void };
export type Histogram = { readonly observe: (value: number) => void };

/** One line below a metric's name: what is appended to the name, label values, further label `le`, value. */
export type Sample = {
  readonly suffix: "" | "_bucket" | "_sum" | "_count";
  /** In the order of the metric's labels. */
  readonly labels: readonly string[];
  readonly le: number | null;
  readonly value: number;
};

/** A metric with labels: one cell for each combination of values, made at its first use. */
export type Vector<L extends string, Cell> = {
  readonly with: (labels: Labels<L>) => Cell;
  /** Forgets all series: for gauges whose labels come and go. */
  readonly reset: () => void;
};

export type Collected<I> = { readonly instrument: I; readonly samples: () => Sample[] };

export function counterVector<L extends string>(labels: readonly L[]): Collected<Vector<L, Counter>> {
  return vector(labels, numberCell);
}

export function gaugeVector<L extends string>(labels: readonly L[]): Collected<Vector<L, Gauge>> {
  return vector(labels, numberCell);
}

export function histogramVector<L extends string>(
  labels: readonly L[],
  bounds: readonly number[],
): Collected<Vector<L, Histogram>> {
  return vector(labels, (values) => histogramCell(values, bounds));
}

type Cell = { readonly samples: () => Sample[] };

function vector<L extends string, C extends Cell>(
  names: readonly L[],
  make: (values: readonly string[]) => C,
): Collected<Vector<L, C>> {
  const cells = new Map<string, C>();
  return {
    instrument: {
      with(labels) {
        const values = names.map((name) => labels[name]);
        const key = values.join("\u0000");
        const known = cells.get(key);
        if (known !== undefined) return known;
        const cell = make(values);
        cells.set(key, cell);
        return cell;
      },
      reset: () => cells.clear(),
    },
    samples: () => [...cells.values()].flatMap((cell) => cell.samples()),
  };
}

function numberCell(labels: readonly string[]) {
  let value = 0;
  return {
    add(amount = 1) {
      value += amount;
    },
    set(next: number) {
      value = next;
    },
    samples: (): Sample[] => [{ suffix: "", labels, le: null, value }],
  };
}

function histogramCell(labels: readonly string[], bounds: readonly number[]) {
  // counts[i] is of values above bounds[i - 1] and up to bounds[i]; the last one is of all above.
  const counts = new Float64Array(bounds.length + 1);
  let sum = 0;
  return {
    observe(value: number) {
      let at = 0;
      while (at < bounds.length && value > bounds[at]!) at++;
      counts[at]!++;
      sum += value;
    },
    samples(): Sample[] {
      let total = 0;
      const buckets = [...bounds, Infinity].map((le, i): Sample => {
        total += counts[i]!;
        return { suffix: "_bucket", labels, le, value: total };
      });
      return [
        ...buckets,
        { suffix: "_sum", labels, le: null, value: sum },
        { suffix: "_count", labels, le: null, value: total },
      ];
    },
  };
}
