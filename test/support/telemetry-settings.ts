// Settings of telemetry for a node with IPv4 in nftables mode, served on two free ports of loopback.
import type { TelemetrySettings } from "../../src/observe/telemetry.ts";

export function telemetrySettings(
  ports: { readonly healthz: number; readonly metrics: number },
  given: Partial<TelemetrySettings> = {},
): TelemetrySettings {
  return {
    mode: "nftables",
    countsLocal: "ports",
    nodeName: "node-a",
    hostname: "host-a",
    families: [{ family: "ipv4", addresses: () => ["127.0.0.1"] }],
    syncPeriodMs: () => 30_000,
    answers: "honest",
    healthzAddress: `127.0.0.1:${ports.healthz}`,
    metricsAddress: `127.0.0.1:${ports.metrics}`,
    hardFail: false,
    showHidden: false,
    gates: [],
    build: {
      major: "1",
      minor: "37",
      gitVersion: "v1.37.1",
      platform: "linux/amd64",
      turnoutVersion: "0",
      nodeVersion: "v20",
    },
    pages: { config: () => ({}), flags: () => new Map(), setVerbosity: null },
    ...given,
  };
}
