// `kubeproxy_conntrack_reconciler_*`: what the removal of stale flows cost.
import type { FlowSweep } from "../../sync/flows.ts";
import { familyLabels } from "../family.ts";
import type { Metrics } from "./metrics.ts";

/** A pass that could not list the flows is not counted, as upstream. */
export function observeSweep(metrics: Metrics, { family, milliseconds, outcome }: FlowSweep): void {
  if (outcome.kind === "failed") return;
  const label = { ip_family: familyLabels[family] };
  metrics.conntrackDuration.with(label).observe(milliseconds / 1000);
  metrics.conntrackDeleted.with(label).add(outcome.deleted);
}
