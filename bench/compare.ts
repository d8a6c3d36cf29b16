// Slow: the real kube-proxy and Turnout side by side, alternating: ready, flip, add, CPU, RSS, first packet, by cluster size.
import type { Mode } from "../test/reference/proxy.ts";
import { compareSizes, drawPlots, type Effort, type Run, writeResults } from "./lib/compare.ts";
import { startAsRoot } from "./lib/run.ts";

const effort: Effort = {
  rounds: Number(process.env.TURNOUT_ROUNDS ?? 3),
  changes: Number(process.env.TURNOUT_CHANGES ?? 10),
  patience: Number(process.env.TURNOUT_PATIENCE ?? 300),
};

/** `MODE:SERVICESxENDPOINTS`; with `?` the real kube-proxy runs only in the first round, with `!` in none. */
const runs = (
  process.env.TURNOUT_SIZES ??
  "nftables:1000x10 nftables:5000x10 nftables:10000x10 nftables:5000x50? nftables:30000x10? nftables:44000x1? nftables:100000x1! iptables:1000x10 iptables:5000x2 iptables:10000x10?"
)
  .split(" ")
  .map(parseRun);

startAsRoot(async () => {
  const results = await compareSizes(runs, effort);
  writeResults(results, effort);
  if (process.env.TURNOUT_SIZES === undefined) drawPlots(results);
});

function parseRun(text: string): Run {
  const match = /^(nftables|iptables):(\d+)x(\d+)([!?]?)$/.exec(text);
  if (match === null) throw new Error(`Cannot read TURNOUT_SIZES: "${text}" is not like nftables:1000x10`);
  const [, mode, services, endpoints, mark] = match;
  return {
    mode: mode as Mode,
    size: { services: Number(services), endpoints: Number(endpoints) },
    reference: mark === "!" ? "none" : mark === "?" ? "first" : "all",
  };
}
