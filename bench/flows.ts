// Passes over tracked UDP flows: CPU and time of one, with 10 and 200,000 flows in the kernel and a million replayed, and what a Sync bears of it.
import { FlowCleaner, type FlowQuery, flowsIn } from "../src/host/netlink/conntrack.ts";
import type { Datagram } from "../src/host/netlink/dump.ts";
import { isStale } from "../src/routing/staleflows.ts";
import { insertFlows } from "../test/kernel/insert-flows.ts";
import type { Namespace } from "../test/kernel/netns.ts";
import { endpoint, routed, servicePort } from "../test/support/routed.ts";
import { publish, type Row } from "./lib/measure.ts";
import { recordFlows, replay } from "./lib/recorded-flows.ts";
import { inNamespace, startAsRoot } from "./lib/run.ts";

const rounds = 5;
/** Passes are a second apart; a Sync with every change, 20 a second. */
const syncsPerPass = 20;

const dns = servicePort("kube-system/dns", {
  protocol: "udp",
  port: 53,
  clusterIP: "172.30.0.10",
  endpoints: [endpoint("10.0.1.5:53")],
});
const routes = routed([dns]);
const query: FlowQuery = { family: "ipv4", protocol: 17, select: (flow) => isStale(flow, routes) };

/** The kernel finds them: none of the flows is answered by it. */
const gone = [{ kind: "answered by", address: "10.0.1.6", port: 53 }] as const;

startAsRoot(async () => {
  const rows: Row[] = [];
  await inNamespace(async (netns) => {
    for (const count of [10, 200_000]) {
      await insertFlows(netns, count);
      rows.push(...(await passes(netns, query, `${count.toLocaleString("en")} flows`, count)));
      const title = `${count.toLocaleString("en")} flows, one endpoint gone`;
      rows.push(...(await passes(netns, { ...query, among: gone }, title, 0)));
    }
    rows.push(await replayed(await recordFlows(netns), 5));
  }, "bench-flows");
  publish(rows);
});

/** `flows`: how many are read. */
async function passes(netns: Namespace, query: FlowQuery, title: string, flows: number): Promise<Row[]> {
  const cleaner = new FlowCleaner({ netns: netns.path });
  await cleaner.clean(query);
  const costs: { cpu: number; ms: number; held: number }[] = [];
  for (let i = 0; i < rounds; i++) {
    const held = holdOfLoop();
    const [start, cpu] = [performance.now(), process.cpuUsage()];
    const { examined } = await cleaner.clean(query);
    const { user, system } = process.cpuUsage(cpu);
    if (examined !== flows) throw new Error(`${examined} flows examined, not ${flows}`);
    costs.push({ cpu: (user + system) / 1000, ms: performance.now() - start, held: held() });
  }
  await cleaner.close();
  const best = (of: "cpu" | "ms" | "held") => Math.min(...costs.map((cost) => cost[of]));
  return [
    { what: `${title}: CPU of a pass`, value: best("cpu"), unit: "ms" },
    {
      what: `${title}: CPU for each of ${syncsPerPass} Syncs`,
      value: best("cpu") / syncsPerPass,
      unit: "ms",
    },
    { what: `${title}: duration`, value: best("ms"), unit: "ms" },
    { what: `${title}: longest hold of the event loop`, value: best("held"), unit: "ms", limit: 20 },
  ];
}

/** Starts to measure; the function that it returns ends it, with the longest time between two turns of the event loop. */
function holdOfLoop(): () => number {
  let [longest, last, isOn] = [0, performance.now(), true];
  const turn = (): void => {
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
    if (isOn) setImmediate(turn);
  };
  setImmediate(turn);
  return () => {
    isOn = false;
    return longest;
  };
}

async function replayed(datagrams: readonly Datagram[], times: number): Promise<Row> {
  let examined = 0;
  const counting: FlowQuery = { ...query, select: (flow) => ++examined > 0 && query.select(flow) };
  const start = process.cpuUsage();
  for await (const _ of flowsIn(replay(datagrams, times), counting));
  const { user, system } = process.cpuUsage(start);
  return {
    what: `${examined.toLocaleString("en")} flows, replayed: CPU`,
    value: (user + system) / 1000,
    unit: "ms",
  };
}
