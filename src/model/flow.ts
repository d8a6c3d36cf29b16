// One conntrack entry: how a connection or UDP flow arrived, where its answers come from, and what the kernel counts of it.
import type { Address, Family } from "./address.ts";

export type Tuple = {
  readonly source: Address;
  readonly destination: Address;
  readonly sourcePort: number;
  readonly destinationPort: number;
};

export type Counters = { readonly packets: number; readonly bytes: number };

/** States of TCP and SCTP, as `conntrack -L` prints them. */
export type FlowState = TcpState | SctpState;

export type TcpState = (typeof tcpStates)[number];

export type SctpState = (typeof sctpStates)[number];

/** By the kernel's number. */
export const tcpStates = [
  "NONE",
  "SYN_SENT",
  "SYN_RECV",
  "ESTABLISHED",
  "FIN_WAIT",
  "CLOSE_WAIT",
  "LAST_ACK",
  "TIME_WAIT",
  "CLOSE",
  "SYN_SENT2",
] as const;

/** By the kernel's number. */
export const sctpStates = [
  "NONE",
  "CLOSED",
  "COOKIE_WAIT",
  "COOKIE_ECHOED",
  "ESTABLISHED",
  "SHUTDOWN_SENT",
  "SHUTDOWN_RECD",
  "SHUTDOWN_ACK_SENT",
  "HEARTBEAT_SENT",
] as const;

/** Bits of `status` that are used. */
export const flowStatus = { seenReply: 1 << 1, assured: 1 << 2, offload: 1 << 14 } as const;

/** What the kernel reports beside the two tuples. */
export type FlowFacts = {
  /** IP protocol number. */
  readonly protocol: number;
  /** Bits; see `flowStatus`. */
  readonly status: number;
  /** null: neither TCP nor SCTP. */
  readonly state: FlowState | null;
  /** Seconds until the kernel removes it, unless another packet arrives. 0 in a DESTROY event. */
  readonly timeout: number;
  readonly mark: number;
  readonly zone: number;
  /** The kernel's id: unique only together with the reply tuple. */
  readonly id: number;
  /** null: the entry was made while nf_conntrack_acct was 0. */
  readonly counters: { readonly original: Counters; readonly reply: Counters } | null;
  /** Milliseconds since 1970; null: the entry was made while nf_conntrack_timestamp was 0. */
  readonly startedAt: number | null;
};

/** A conntrack entry. */
export type Flow = FlowFacts & {
  readonly family: Family;
  readonly original: Tuple;
  readonly reply: Tuple;
};

/** The same without nested objects: a reader of a dump implements it without copying anything. */
export type FlowView = FlowFacts & {
  readonly family: Family;
  readonly source: Address;
  readonly sourcePort: number;
  readonly destination: Address;
  readonly destinationPort: number;
  /** Where answers come from: the endpoint, when the flow was translated. */
  readonly replySource: Address;
  readonly replySourcePort: number;
  /** Where answers are sent: this node, when the source was masqueraded. */
  readonly replyDestination: Address;
  readonly replyDestinationPort: number;
};

export function viewOfFlow({ original, reply, ...facts }: Flow): FlowView {
  return {
    ...facts,
    source: original.source,
    sourcePort: original.sourcePort,
    destination: original.destination,
    destinationPort: original.destinationPort,
    replySource: reply.source,
    replySourcePort: reply.sourcePort,
    replyDestination: reply.destination,
    replyDestinationPort: reply.destinationPort,
  };
}
