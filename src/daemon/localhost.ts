// Listeners for NodePorts on loopback addresses, with their metrics.
import type { Family } from "../model/address.ts";
import { LocalhostNodePorts, type LocalhostReport } from "../modes/nftables/host/localhost.ts";
import { systemClock } from "../observe/clock.ts";
import { familyLabels } from "../observe/family.ts";
import type { Log } from "../observe/log/log.ts";
import type { Metrics } from "../observe/metrics/metrics.ts";
import type { LoopObserver } from "../sync/loop.ts";
import type { Part } from "./part.ts";
import type { StartedNode } from "./start/start.ts";

type Localhost = Part & { readonly observer: Partial<LoopObserver> };

/** Updated after every successful Sync. */
export function openLocalhost(
  { families, settings, mode }: Pick<StartedNode, "families" | "settings" | "mode">,
  metrics: Metrics,
  log: Log,
): Localhost {
  const report = reportTo(metrics, log);
  // Also without a loopback address in nodePortAddresses: a change of the configuration may add one.
  const served = families.filter(
    (family) =>
      mode.behavior.loopback === "nftLocalhost" && settings.resolved.settings[family].nftLocalhost !== "pass",
  );
  const listeners = new Map(
    served.map((family) => [family, new LocalhostNodePorts(family, systemClock, Math.random, report)]),
  );
  metrics.localhostConnections.from(() =>
    [...listeners].map(([family, { connections }]) => ({ labels: label(family), value: connections })),
  );
  return {
    run: async () => null,
    async close() {
      for (const each of listeners.values()) await each.close();
    },
    observer: {
      afterSync({ record, routes }) {
        if (record.outcome.kind === "ok") void listeners.get(record.family)?.update(routes());
      },
    },
  };
}

function reportTo(metrics: Metrics, log: Log): LocalhostReport {
  return {
    listeners: (family, count) => metrics.localhostListeners.with(label(family)).set(count),
    outcome: (family, outcome) =>
      metrics.localhostAcceptedConnections.with({ ...label(family), outcome }).add(),
    failed: (family, error) => {
      metrics.localhostListenFailures.with(label(family)).add();
      log.error(error, "Cannot serve NodePort on loopback; retrying at the next Sync");
    },
  };
}

function label(family: Family): { ip_family: string } {
  return { ip_family: familyLabels[family] };
}
