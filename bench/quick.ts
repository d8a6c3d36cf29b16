// Slow: the essential comparison with the real kube-proxy in under three minutes: 1,000 and 10,000 Services in nftables mode, one round.
import { compareSizes, type Effort, type Run, writeResults } from "./lib/compare.ts";
import { startAsRoot } from "./lib/run.ts";

const effort: Effort = { rounds: 1, changes: 5, patience: 60 };
const runs: readonly Run[] = [1_000, 10_000].map((services) => ({
  mode: "nftables",
  size: { services, endpoints: 10 },
  reference: "all",
}));

startAsRoot(async () => {
  writeResults(await compareSizes(runs, effort), effort);
});
