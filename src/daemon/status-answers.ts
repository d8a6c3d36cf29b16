// Answers of the status socket once the daemon has started.
import { writeConfig } from "../config/file/write.ts";
import { parseFrom, parseTo } from "../explain/question.ts";
import { viewFor, viewsOf } from "../explain/view.ts";
import type { NoState } from "../history/entry.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { systemClock } from "../observe/clock.ts";
import type { Answering } from "../observe/status/socket.ts";
import {
  type Answers,
  healthReportOf,
  keepStatus,
  type RememberedSync,
  type Status,
  type StatusFacts,
} from "../observe/status/status.ts";
import type { Telemetry } from "../observe/telemetry.ts";
import type { TrafficReport } from "../observe/traffic/report.ts";
import type { LoopObserver } from "../sync/loop.ts";
import type { History } from "./history.ts";
import type { NodeSettings } from "./node-settings.ts";
import type { OpenNode } from "./start/start.ts";
import { waitFor } from "./start/startup-status.ts";

/** ServicePorts written between two iterations of the event loop: about a millisecond of work. */
const portsPerChunk = 200;

/** Parts of the daemon that have answers of their own. */
type Parts = {
  readonly history: Pick<History, "lines" | "stateAt">;
  readonly traffic: () => Promise<TrafficReport>;
};

export function openStatusAnswers(
  facts: StatusFacts,
  { source, settings, drivers }: Pick<OpenNode, "source" | "settings" | "drivers">,
  telemetry: Pick<Telemetry, "problems" | "intercepts" | "health" | "latency" | "limits" | "events">,
  { history, traffic }: Parts,
): {
  readonly answering: Answering;
  readonly status: () => Status;
  readonly lastSync: () => RememberedSync | null;
  readonly observer: Partial<LoopObserver>;
} {
  /** null: the Source has not yielded a Snapshot yet. */
  let latest: Snapshot | null = null;
  const firstLists = waitFor("the cluster's first complete lists");
  const { status, lastSync, ...keeper } = keepStatus(facts, {
    source: () => source.status(),
    configuration: () => writeConfig(settings.config),
    problems: telemetry.problems,
    intercepts: telemetry.intercepts,
    health: () => healthReportOf(telemetry.health),
    more: () => ({
      latency: telemetry.latency(),
      limits: telemetry.limits(),
      events: telemetry.events.recent(),
    }),
    waits: () => (latest === null ? firstLists : null),
    now: () => systemClock.wall(),
  });
  const arrived = (snapshot: Snapshot) => {
    latest = snapshot;
  };
  const stateOf = (query: URLSearchParams) => {
    const at = query.get("at");
    return at === null ? latest : history.stateAt(Number(at));
  };
  return {
    answering: {
      "/": status,
      "/relays": () => relaysOf(drivers),
      "/traffic": traffic,
      "/view": async (query) => viewOf(await stateOf(query), settings, query),
      "/cluster": async (query) => {
        const state = await stateOf(query);
        if (state === null || "kind" in state) return [state];
        return viewsOf(state, portsPerChunk);
      },
      "/history": (query) => history.lines(query),
    },
    status,
    lastSync,
    observer: { ...keeper, arrived },
  };
}

function relaysOf(drivers: OpenNode["drivers"]): Answers["/relays"] {
  return Object.fromEntries([...drivers].map(([family, driver]) => [family, driver.report().relays?.()]));
}

function viewOf(
  snapshot: Snapshot | NoState | null,
  { resolved }: NodeSettings,
  query: URLSearchParams,
): Answers["/view"] {
  const [from, to] = [parseFrom(query.get("from") ?? ""), parseTo(query.get("to") ?? "")];
  if (snapshot !== null && "kind" in snapshot) return snapshot;
  if (snapshot === null || !from.ok || !to.ok || from.value.kind === "named") return null;
  const { ipv4, ipv6 } = resolved.settings;
  return viewFor(snapshot, [ipv4.nodeIP, ipv6.nodeIP], from.value, to.value);
}
