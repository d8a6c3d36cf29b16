// What a walk through rules needs to know of the node besides the rules.
import type { FamilySettings } from "../config/resolve/settings.ts";
import type { Address } from "../model/address.ts";

export function surroundingsOf({ localAddresses, detector }: FamilySettings): {
  readonly localAddresses: readonly Address[];
  readonly podInterface: string;
} {
  return { localAddresses, podInterface: podInterface(detector) };
}

/** An interface that packets of a pod on this node may arrive on. */
function podInterface(detector: FamilySettings["detector"]): string {
  if (detector.kind === "interface") return detector.name;
  return detector.kind === "interfacePrefix" ? `${detector.prefix}0` : "pod0";
}
