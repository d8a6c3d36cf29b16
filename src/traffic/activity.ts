// In which phase a tracked flow is, and whether it may be deleted without breaking a connection.
import { type FlowFacts, type FlowState, flowStatus } from "../model/flow.ts";
import type { Protocol } from "../model/snapshot.ts";

/**
 * opening: nothing was answered yet. active: packets went both ways. closing: one side has ended it. closed: the kernel keeps the entry
 * for late packets only.
 */
export type Activity = "opening" | "active" | "closing" | "closed";

export function activityOf({ state, status }: Pick<FlowFacts, "state" | "status">): Activity {
  if (state !== null) return phaseOf[state];
  return (status & flowStatus.seenReply) === 0 ? "opening" : "active";
}

const phaseOf: Readonly<Record<FlowState, Activity>> = {
  NONE: "opening",
  SYN_SENT: "opening",
  SYN_SENT2: "opening",
  SYN_RECV: "active",
  ESTABLISHED: "active",
  FIN_WAIT: "closing",
  CLOSE_WAIT: "closing",
  LAST_ACK: "closing",
  TIME_WAIT: "closed",
  CLOSE: "closed",
  CLOSED: "closed",
  COOKIE_WAIT: "opening",
  COOKIE_ECHOED: "active",
  HEARTBEAT_SENT: "active",
  SHUTDOWN_SENT: "closing",
  SHUTDOWN_RECD: "closing",
  SHUTDOWN_ACK_SENT: "closing",
};

/** A TCP or SCTP connection that both sides know of: deleting its entry would break it. */
export function isConnection({ state }: Pick<FlowFacts, "state">): boolean {
  return state !== null && (phaseOf[state] === "active" || phaseOf[state] === "closing");
}

export function isReplied({ status }: Pick<FlowFacts, "status">): boolean {
  return (status & flowStatus.seenReply) !== 0;
}

/** null: a protocol that Services do not have. */
export function protocolOf({ protocol }: Pick<FlowFacts, "protocol">): Protocol | null {
  return names[protocol] ?? null;
}

const names: Readonly<Record<number, Protocol>> = { 6: "tcp", 17: "udp", 132: "sctp" };
