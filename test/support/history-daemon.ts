// A daemon as far as its status socket is concerned: scripted changes of a small shop, on a clock that only the test moves.

import { gitVersion } from "../../src/config/version.ts";
import { type History, openHistory } from "../../src/daemon/history.ts";
import { NodeSettings } from "../../src/daemon/node-settings.ts";
import { openStatusAnswers } from "../../src/daemon/status-answers.ts";
import { defaultConfig } from "../../src/explain/node-routes.ts";
import { Cluster } from "../../src/manifests/cluster.ts";
import type { Kind } from "../../src/manifests/objects.ts";
import { serveStatus } from "../../src/observe/status/socket.ts";
import type { StatusFacts } from "../../src/observe/status/status.ts";
import type { SyncRecord } from "../../src/sync/record.ts";
import { endpoint, node, service, slice } from "../objects.ts";
import { logLines } from "./log-lines.ts";
import { type ManualClock, manualClock } from "./manual-clock.ts";
import { plainRecord } from "./sync-record.ts";

export type ShopDaemon = {
  readonly clock: ManualClock;
  readonly history: History;
  /** One event, and the Sync of IPv4 that follows. */
  readonly change: (kind: Kind, object: unknown, sync?: Partial<SyncRecord>) => Promise<void>;
  readonly remove: (kind: Kind, name: string) => Promise<void>;
  /** Serves the status socket until the returned function is called. */
  readonly serve: (socket: string) => Promise<() => void>;
};

export const shopService = (spec: Record<string, unknown> = {}) =>
  service({ type: "NodePort", ports: [{ name: "http", port: 80, nodePort: 30080 }], ...spec });

/** Of pods `web-N` at 10.0.N.1 on node-a (odd) or node-b (even); a name with `-` is terminating, with `!` not ready. */
export function webSlice(...pods: readonly string[]) {
  return slice(
    pods.map((pod) => {
      const number = Number(pod.replace(/[-!]$/, ""));
      const conditions = {
        ready: !/[-!]$/.test(pod),
        serving: !pod.endsWith("!"),
        terminating: pod.endsWith("-"),
      };
      return endpoint(`10.0.${number}.1`, {
        conditions,
        nodeName: number % 2 === 1 ? "node-a" : "node-b",
        targetRef: { kind: "Pod", name: `web-${number}` },
      });
    }),
  );
}

/** `bytes`: 0 keeps no history. */
export async function shopDaemon(bytes = 8_000_000): Promise<ShopDaemon> {
  const clock = manualClock(Date.UTC(2026, 10, 18, 10, 30, 0));
  const config = defaultConfig("nftables");
  const settings = new NodeSettings(config, {
    nodeName: "node-a",
    nodeIPs: ["192.168.0.2"],
    podCIDRs: ["10.0.1.0/24"],
    zone: "",
    localAddresses: { ipv4: ["192.168.0.2"], ipv6: [] },
    tcpBeLiberal: false,
  });
  const { log } = logLines(clock);
  const { signal } = new AbortController();
  const kept = { bytes, ageMs: 86_400_000, directory: null };
  const history = openHistory(kept, { nodeName: "node-a", families: ["ipv4"], settings }, log, signal, clock);
  const answers = openStatusAnswers(
    factsOf(),
    { source: { status: () => ({ synced: true, resources: {} }) } as never, settings, drivers: new Map() },
    {
      problems: () => [],
      intercepts: () => ({}) as never,
      latency: () => null,
      limits: () => [],
      events: { recent: () => [] } as never,
      health: { verdict: () => ({ healthy: true, reasons: [] }), watchAges: () => new Map() } as never,
    },
    { history, traffic: () => Promise.reject(new Error("nothing is counted")) },
  );
  const cluster = new Cluster("node-a");
  let version = 800;
  const received = () => ({ version: String(++version), at: clock.wall() });
  const take = async (sync: Partial<SyncRecord>) => {
    clock.advance(1);
    const snapshot = cluster.take();
    answers.observer.arrived?.(snapshot);
    history.observer.arrived?.(snapshot);
    history.observer.taken?.("ipv4", snapshot);
    clock.advance(3);
    history.observer.synced?.({ ...plainRecord, finishedAt: clock.wall(), ...sync }, snapshot);
    await history.idle();
  };
  cluster.upsert("Service", shopService());
  cluster.upsert("EndpointSlice", webSlice("1", "2"));
  cluster.upsert("Node", node("node-a", { spec: { podCIDRs: ["10.0.1.0/24"] } }));
  await take({ trigger: "first" });
  return {
    clock,
    history,
    async change(kind, object, sync = {}) {
      cluster.upsert(kind, object, received());
      await take(sync);
    },
    async remove(kind, name) {
      cluster.remove(kind, "shop", name, received());
      await take({});
    },
    serve: (socket) => serveStatus(socket, () => answers.answering),
  };

  function factsOf(): StatusFacts {
    return {
      pid: 7,
      version: gitVersion("0.0.0"),
      node: "node-a",
      mode: "nftables",
      families: ["ipv4"],
      source: "files:/nonexistent",
      ownership: "plain",
      startedAt: clock.wall(),
    };
  }
}
