// What a truth table means for userspace mode, where no line names it: a relay is between sender and endpoint.
import type { ExpectedOutcome, PacketCase } from "./scenarios.ts";

type Difference = {
  readonly reason: string;
  readonly concerns: (packet: PacketCase) => boolean;
  readonly outcome: (outcome: ExpectedOutcome) => ExpectedOutcome;
};

/** The first that concerns a packet holds. */
const differences: readonly Difference[] = [
  {
    reason: "there are no relays for SCTP",
    concerns: ({ to }) => to.protocol === "sctp",
    outcome: () => ({ kind: "pass" }),
  },
  {
    reason: "the relay accepts the packet before it selects an endpoint",
    concerns: ({ to, outcome }) =>
      to.protocol !== "icmp" && (outcome.kind === "reject" || outcome.kind === "drop"),
    outcome: () => ({ kind: "close" }),
  },
  {
    reason: "the relay connects to the endpoint, and the answer comes back to the relay",
    concerns: ({ outcome }) => outcome.kind === "forward",
    outcome: (outcome) =>
      outcome.kind !== "forward"
        ? outcome
        : {
            kind: "forward",
            choices: outcome.choices.map(({ endpoint }) => ({ endpoint, masquerade: true, bypassed: false })),
          },
  },
];

export function asRelayed(packet: PacketCase): PacketCase {
  const difference = differences.find(({ concerns }) => concerns(packet));
  const outcome = difference?.outcome(packet.outcome) ?? packet.outcome;
  return { ...packet, modes: ["userspace"], outcome };
}
