// `turnout top`: a live table of the traffic of Services, from the daemon on this machine.
import { requiredSocket } from "../../inspect/status-socket.ts";
import { daemonStatus } from "../../inspect/target.ts";
import { UsageError } from "../../inspect/usage-error.ts";
import { queryDaemon } from "../../observe/status/client.ts";
import type { TrafficReport } from "../../observe/traffic/report.ts";
import { earlierThan, nothingEarlier, sortOrders, topRows } from "../../observe/traffic/top-rows.ts";
import { command } from "../command.ts";
import type { CommandSpec } from "../flags.ts";
import { daemonNodeFlag, daemonSourceFlag, outputFlag } from "../target-flags.ts";
import { printTop } from "../top/print.ts";
import type { CommandWorld } from "./kube-proxy.ts";

export const topSpec = {
  name: "top",
  summary: "show the traffic of Services on this machine, live",
  usage: ["[FILTER] [flags]"],
  args: [{ name: "FILTER", description: "part of NAMESPACE/SERVICE:PORT; without it all Services" }],
  flags: [
    {
      name: "sort",
      value: "ORDER",
      choices: sortOrders,
      fallback: "rate, or active where connections are not counted",
      description:
        "largest first: new connections per second, all connections, active ones, bytes, refused packets; or by name",
    },
    { name: "endpoints", description: "also show each endpoint; requires --traffic=endpoints of the daemon" },
    {
      name: "interval",
      value: "SECONDS",
      example: "5",
      fallback: "2",
      description: "time between two screens, from 1 to 3600",
    },
    { name: "once", description: "print one table without rates and exit" },
    daemonSourceFlag,
    daemonNodeFlag,
    { ...outputFlag, description: "output format; json: one report per line" },
  ],
  notes: [
    "CONNS: connections since the rules of the Service were written; REFUSED: packets without an endpoint or from outside the source ranges; SKEW: connections of the busiest endpoint divided by the average. IN and OUT count bytes from and to clients since the daemon started. A connection counts on the node that translates it, which is that of the client or the one it enters.",
    "Requires root.",
  ],
  examples: ["turnout top", "turnout top shop/ --sort=bytes", "turnout top --once -o json"],
} as const satisfies CommandSpec;

export const top = command(topSpec, async ({ flags, args: [filter = null] }, world, signal) => {
  const { source = "daemon", node = "node-a", sort = null, once = false, output = "text" } = flags;
  const intervalMs = intervalOf(flags.interval) * 1000;
  const socket = requiredSocket(source, node, world);
  await daemonStatus(
    socket,
    "start one with turnout run, or select another, for example --source=daemon:SOCKET or --source=playground",
  );
  let last: TrafficReport | null = null;
  let earlier = nothingEarlier;
  for (;;) {
    const report = await read(socket);
    if (last !== null) earlier = earlierThan(report, last, earlier);
    if (output === "json") world.stdout(`${JSON.stringify(report)}\n`);
    else {
      const rows = topRows(report, earlier, { sort, filter });
      show(printTop(rows, report, screenOf(world, once, flags.endpoints ?? false)), once, world);
    }
    if (once) return 0;
    last = report;
    if (!(await passes(intervalMs, world, signal))) return 0;
  }
});

function show(text: string, once: boolean, { clearScreen, stdout }: CommandWorld): void {
  if (!once) clearScreen?.();
  stdout(!once && clearScreen === undefined ? `${text}\n` : text);
}

function screenOf({ width, height, clock, clearScreen }: CommandWorld, once: boolean, endpoints: boolean) {
  const lines = once || clearScreen === undefined || height === undefined ? null : Math.max(1, height - 5);
  return { width, lines, endpoints, now: clock.wall() };
}

async function read(socket: string): Promise<TrafficReport> {
  const report = await queryDaemon(socket, "/traffic").catch((error: unknown) => {
    throw new UsageError(`the daemon at ${socket} closed the connection: ${(error as Error).message}; retry`);
  });
  if (report === null)
    throw new UsageError("the daemon is starting; turnout status shows what it is waiting for");
  if (!("ports" in report))
    throw new UsageError("the daemon is older than this program: it does not report traffic");
  return report;
}

/** False: interrupted. */
function passes(ms: number, { clock }: CommandWorld, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve(false);
    const stop = () => {
      cancel();
      resolve(false);
    };
    const cancel = clock.after(ms, () => {
      signal.removeEventListener("abort", stop);
      resolve(true);
    });
    signal.addEventListener("abort", stop, { once: true });
  });
}

function intervalOf(text = "2"): number {
  const seconds = /^\d{1,4}$/.test(text) ? Number(text) : 0;
  if (seconds < 1 || seconds > 3600)
    throw new UsageError(
      `--interval must be a number of seconds between 1 and 3600, not ${JSON.stringify(text)}`,
    );
  return seconds;
}
