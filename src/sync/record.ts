// The record of one Sync: what was wanted, what changed, how long it took, what failed.

import type { Family } from "../model/address.ts";
import type { Problem } from "../model/problem.ts";
import type { RuleCount } from "../modes/driver.ts";

/** Why a Sync ran: the first one, a change, after a failure, after a while, or because another program changed the host. */
export type Trigger = "first" | "change" | "retry" | "resync" | "drift";

export type SyncRecord = {
  readonly family: Family;
  readonly trigger: Trigger;
  /** Milliseconds since 1970. */
  readonly startedAt: number;
  readonly finishedAt: number;
  /** ServicePorts whose Routes were visited. */
  readonly changedPorts: number;
  readonly servicePorts: number;
  readonly endpoints: number;
  readonly operations: number;
  readonly bytes: number;
  /** Whether the host was read first. */
  readonly readBack: boolean;
  /** Attempts that the host refused before one that it took. */
  readonly retries?: number;
  /** Of modes that write rules: as of the last attempt, which need not be this Sync's if it failed before. */
  readonly rules?: readonly RuleCount[];
  readonly outcome:
    | { readonly kind: "ok"; readonly refused: readonly Problem[] }
    | {
        readonly kind: "failed";
        readonly message: string;
        /** It was iptables-restore that failed, and nothing else. */
        readonly ofRules?: boolean;
      };
};
