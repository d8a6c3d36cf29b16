// Streams the whole conntrack table past a visitor; memory does not grow with the table.
import type { Family } from "../../model/address.ts";
import type { FlowView } from "../../model/flow.ts";
import { HostError } from "../error.ts";
import { readFlows } from "./conntrack.ts";
import { explained } from "./conntrack-stats.ts";
import type { Place } from "./socket.ts";

export type FlowReading = {
  readonly examined: number;
  /** False: the table was resized meanwhile, so that flows may be missing or counted twice. */
  readonly complete: boolean;
};

/** Calls `visit` for every flow of these families; the view is valid only during the call. Throws HostError. */
export async function visitEveryFlow(
  families: readonly Family[],
  visit: (flow: FlowView) => void,
  place: Place = {},
  signal?: AbortSignal,
): Promise<FlowReading> {
  let [examined, complete] = [0, true];
  const select = (flow: FlowView) => {
    examined++;
    visit(flow);
    return false;
  };
  for (const family of families) {
    try {
      for await (const _ of readFlows({ family, select }, place, signal));
    } catch (error) {
      if (!(error instanceof HostError) || error.errno !== "EINTR") explained(error);
      complete = false;
    }
  }
  return { examined, complete };
}
