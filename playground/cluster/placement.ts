// Scheduling: which nodes a Pod can run on, by cordon, nodeSelector and taints. Pure.
import { type ApiObject, dig, isMap, mapsIn, own } from "../api/objects/object.ts";

/** The reason, or null when the Pod can run on the node. */
export function whyUnschedulable(pod: ApiObject, node: ApiObject): string | null {
  const { name, labels } = node.metadata;
  if (dig(node, "spec.unschedulable") === true) return `${name} is cordoned`;
  const wanted = dig(pod, "spec.nodeSelector");
  const lacks = Object.entries(isMap(wanted) ? wanted : {}).find(
    ([key, value]) => own(labels, key) !== value,
  );
  if (lacks !== undefined) return `${name} does not have the label ${lacks[0]}=${String(lacks[1])}`;
  const taint = mapsIn(dig(node, "spec.taints")).find(
    (each) => each.effect !== "PreferNoSchedule" && !tolerates(pod, each),
  );
  return taint === undefined
    ? null
    : `${name} has the taint ${String(taint.key)}, which it does not tolerate`;
}

function tolerates(pod: ApiObject, taint: Record<string, unknown>): boolean {
  return mapsIn(dig(pod, "spec.tolerations")).some(
    ({ key = "", operator = "Equal", value = "", effect = "" }) =>
      (key === "" || key === taint.key) &&
      (operator === "Exists" || value === (taint.value ?? "")) &&
      (effect === "" || effect === taint.effect),
  );
}
