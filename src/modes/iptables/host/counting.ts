// Packet counters (nfacct) in rules: given up where the kernel has the counters, but not the match that names them.
import type { RestoreFailed } from "../../../host/iptables/refusal.ts";
import type { Problem } from "../../../model/problem.ts";
import type { Counters } from "../foundation.ts";
import type { Simplified } from "./tables.ts";

const none: Counters = { invalidDropped: false, localhostNodePorts: false };

export class Counting {
  #counters: Counters;
  #lacks: readonly Problem[] = [];

  constructor(counters: Counters) {
    this.#counters = counters;
  }

  /** Those that rules name. */
  get counters(): Counters {
    return this.#counters;
  }

  get lacks(): readonly Problem[] {
    return this.#lacks;
  }

  /** Whether the error names the match. The legacy back end may name the end of the table, and nothing else. */
  isRefused({ text, line }: Pick<RestoreFailed, "text" | "line">): boolean {
    return this.#isUsed() && (/nfacct/.test(text) || line.includes(" -m nfacct "));
  }

  /** From now on rules are written without counters; null: the counters are not the cause. */
  giveUp(error: RestoreFailed): Simplified | null {
    const isCertain = this.isRefused(error);
    if (!this.#isUsed() || (!isCertain && namesLine(error))) return null;
    const [counters, lacks] = [this.#counters, this.#lacks];
    this.#counters = none;
    this.#lacks = uncounted;
    if (isCertain) return { kind: "certain" };
    const undo = () => {
      [this.#counters, this.#lacks] = [counters, lacks];
    };
    return { kind: "guess", undo };
  }

  #isUsed(): boolean {
    return this.#counters.invalidDropped || this.#counters.localhostNodePorts;
  }
}

/** Whether the error names the refused line: the end of the table means any of its lines. */
function namesLine({ line, owners }: RestoreFailed): boolean {
  return owners.length > 0 || (line !== "" && line !== "COMMIT");
}

const uncounted: readonly Problem[] = [
  {
    kind: "unsupported",
    object: "iptables",
    field: "",
    message:
      "packets are not counted: the kernel lacks the nfacct match; load the module xt_nfacct and restart",
  },
];
