// Opens the health and metrics servers, retries where a port is taken, and reports a failure that must end the process.
import type { Events } from "../events/recorder.ts";
import type { BuildFacts, Metrics, OpenMetrics } from "../metrics/metrics.ts";
import { startTime } from "../metrics/process.ts";
import type { ProxyHealth } from "../proxy-health.ts";
import type { TelemetrySettings, TelemetryWorld } from "../telemetry.ts";
import { debugPages } from "./debug-server.ts";
import { healthPages } from "./health-server.ts";
import { type ListenAddress, listen, type Respond } from "./http.ts";
import { type KeptServer, keepServing } from "./keep-serving.ts";

type Parts = {
  readonly opened: OpenMetrics;
  readonly metrics: Metrics;
  readonly health: ProxyHealth;
  readonly events: Events;
  /** Names of the feature gates that are on. */
  readonly gates: ReadonlySet<string>;
};

type Servers = { readonly serve: () => void; readonly close: () => Promise<void> };

const connectionLimit = 512;

const drainMs = 1_000;

export function openServers(settings: TelemetrySettings, world: TelemetryWorld, parts: Parts): Servers {
  const { clock, log } = world;
  const { metrics, health, events } = parts;
  const servers: KeptServer[] = [];

  function serveAt(name: "healthz" | "metrics", address: string, respond: Respond): KeptServer {
    const limits = {
      connections: connectionLimit,
      onDisplaced: () => metrics.connectionsDropped.with({ server: name }).add(),
    };
    const serving = {
      name,
      address,
      open: () => listen(listenAddress(address), respond, limits),
      onHardFail: settings.hardFail ? (error: Error) => void giveUp(name, error) : null,
    };
    return keepServing(serving, clock, log.in("observe/servers/keep-serving.ts"));
  }

  async function giveUp(name: "healthz" | "metrics", error: Error): Promise<void> {
    const reason = name === "healthz" ? "FailedToStartProxierHealthcheck" : "FailedToStartMetricServer";
    events.record(reason, { kind: "Node", name: settings.nodeName }, error.message);
    await events.drain(drainMs);
    world.onHardFail(error);
  }

  return {
    serve() {
      if (settings.healthzAddress !== "") {
        servers.push(serveAt("healthz", settings.healthzAddress, healthPages(health, metrics, clock)));
      }
      servers.push(serveAt("metrics", settings.metricsAddress, metricsPages(settings, world, parts)));
    },
    async close() {
      await Promise.all(servers.map((server) => server.close()));
    },
  };
}

function metricsPages(settings: TelemetrySettings, world: TelemetryWorld, { opened, gates }: Parts): Respond {
  const { mode, pages, build } = settings;
  const now = () => world.clock.wall();
  const started = startTime(world.process) ?? now() / 1000;
  const status = gates.has("ComponentStatusz") ? statusFacts(build, started) : null;
  const flags = gates.has("ComponentFlagz") ? pages.flags : null;
  return debugPages({ ...opened, ...pages, mode, now, flags, status, startTime: started });
}

function statusFacts(build: BuildFacts, startedSeconds: number) {
  return {
    startedAt: startedSeconds * 1000,
    runtime: `node ${build.nodeVersion}`,
    binaryVersion: build.gitVersion.replace(/^v/, ""),
    emulationVersion: `${build.major}.${build.minor}`,
  };
}

/** `0.0.0.0:10256`, `[::]:10256`; validation has seen to it that it is one of these. */
function listenAddress(text: string): ListenAddress {
  const at = text.lastIndexOf(":");
  const host = text.slice(0, at).replace(/^\[(.*)\]$/, "$1");
  return { host, port: Number(text.slice(at + 1)), families: "both" };
}
