// A set of flows by the kernel's id and their source port; 16 bytes each, up to a limit.
import type { FlowView } from "../model/flow.ts";

type Named = Pick<FlowView, "id" | "sourcePort">;

/** The kernel's id is a hash of 32 bits: of a million flows, some have the same. */
export function flowName({ id, sourcePort }: Named): number {
  return id * 65_536 + sourcePort;
}

const most = 1_000_000;

export class FlowNames {
  readonly #names = new Set<number>();

  /** Ignored once there are a million: what is not in the set is treated as unknown. */
  add(flow: Named): void {
    if (this.#names.size < most) this.#names.add(flowName(flow));
  }

  has(flow: Named): boolean {
    return this.#names.has(flowName(flow));
  }
}
