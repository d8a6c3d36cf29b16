// The metrics of this process: the table made live, with what is known from the start already filled in.
import type { Clock } from "../clock.ts";
import type { Definition } from "./define.ts";
import { type Instruments, type MetricsSettings, openRegistry } from "./registry.ts";
import { metricTable, sliMetrics } from "./table.ts";

export type Metrics = Instruments<typeof metricTable>;
export type SliMetrics = Instruments<typeof sliMetrics>;

export type BuildFacts = {
  /** Of the Kubernetes whose kube-proxy we replace: `1`, `37`, `v1.37.1+turnout.0.1.0`. */
  readonly major: string;
  readonly minor: string;
  readonly gitVersion: string;
  /** `linux/amd64` */
  readonly platform: string;
  /** Ours: `0.1.0`. */
  readonly turnoutVersion: string;
  /** `v20.20.2` */
  readonly nodeVersion: string;
};

export type GateFact = { readonly name: string; readonly stage: string; readonly on: boolean };

export type OpenMetrics = {
  readonly metrics: Metrics;
  readonly slis: SliMetrics;
  /** Everything `/metrics` shows, for pages and tests. */
  readonly shown: readonly Definition[];
  readonly print: () => Promise<string>;
  /** The text of `/metrics/slis`. */
  readonly printSlis: () => Promise<string>;
};

export function openMetrics(
  settings: MetricsSettings,
  build: BuildFacts,
  gates: readonly GateFact[],
  clock: Clock,
): OpenMetrics {
  const main = openRegistry(metricTable, settings, clock);
  const slis = openRegistry({ ...sliMetrics, startTime: metricTable.startTime }, settings, clock);
  reportBuild(main.metrics, build);
  for (const { name, stage, on } of gates) main.metrics.featureEnabled.with({ name, stage }).set(on ? 1 : 0);
  for (const { stability, deprecatedSince = "" } of [...main.shown, ...main.hidden]) {
    if (stability === null) continue;
    main.metrics.registered.with({ stability_level: stability, deprecated_version: deprecatedSince }).add();
  }
  main.metrics.hidden.add(main.hidden.length);
  return {
    metrics: {
      ...main.metrics,
      startTime: {
        from(read) {
          main.metrics.startTime.from(read);
          slis.metrics.startTime.from(read);
        },
      },
    },
    slis: slis.metrics,
    shown: main.shown,
    print: main.print,
    printSlis: slis.print,
  };
}

// Labels of Kubernetes components that describe a Go build stay empty.
function reportBuild(metrics: Metrics, build: BuildFacts): void {
  metrics.buildInfo
    .with({
      major: build.major,
      minor: build.minor,
      git_version: build.gitVersion,
      git_commit: "",
      git_tree_state: "",
      build_date: "",
      go_version: "",
      compiler: `node ${build.nodeVersion}`,
      platform: build.platform,
    })
    .set(1);
  metrics.version.with({ version: build.turnoutVersion, node_version: build.nodeVersion }).set(1);
}
