// Real packets against our Plans: decide(), the walk through the Plan and the kernel agree on every row.
import { isLoopback } from "../../src/model/address.ts";
import { describeConformance } from "./conformance.ts";
import { reasonToSkip } from "./netns.ts";
import { iptablesPlan, nftablesPlan } from "./plans.ts";

describeConformance({
  title: "the nftables Plan in the kernel",
  program: "turnout",
  mode: nftablesPlan,
  reasonToSkip: reasonToSkip(),
  // NodePorts on loopback are served by a listener of the daemon, not by the Plan.
  leavesOut: ({ to, outcome }) => isLoopback(to.address) && outcome.kind === "forward",
});

describeConformance({
  title: "the iptables Plan in the kernel",
  program: "turnout",
  mode: iptablesPlan,
  reasonToSkip: reasonToSkip(),
});
