// The shared chains that pick an endpoint: one for each protocol, kind of frontend and number of endpoints.
import type { FamilySettings } from "../../config/resolve/settings.ts";
import type { Protocol } from "../../model/snapshot.ts";
import type { Chain, Rule, Statement, Verdict } from "../../plan/nftables/types.ts";
import { goto } from "../../plan/nftables/verdict.ts";
import { byAddress, byNodePort, commented, fromPod, rule } from "./foundation.ts";
import { type PickerKind, pickerName, pickerNamed, slotMap } from "./names.ts";

/** A verdict that leads to a picker, and the chains this needs, the picker first. */
export type Picker = { readonly verdict: Verdict; readonly chains: readonly Chain[] };

/** The same objects for the same arguments. */
export function picker(
  kind: PickerKind,
  protocol: Protocol,
  slots: number,
  settings: FamilySettings,
): Picker {
  let made = known.get(settings);
  if (made === undefined) {
    made = new Map();
    known.set(settings, made);
  }
  const name = pickerName(kind, protocol, slots);
  let found = made.get(name);
  if (found === undefined) {
    found = { verdict: goto(name), chains: make(kind, protocol, slots, settings) };
    made.set(name, found);
  }
  return found;
}

/** Those among chains of these names, whatever they were made for. */
export function pickersAmong(names: readonly string[], settings: FamilySettings): readonly Chain[] {
  return names.flatMap((name) => {
    const named = pickerNamed(name);
    return named === null ? [] : picker(named.kind, named.protocol, named.slots, settings).chains[0]!;
  });
}

const known = new WeakMap<FamilySettings, Map<string, Picker>>();

function make(
  kind: PickerKind,
  protocol: Protocol,
  slots: number,
  settings: FamilySettings,
): readonly Chain[] {
  const chain = (rules: readonly Rule[]): Chain => ({
    name: pickerName(kind, protocol, slots),
    hook: null,
    rules,
    comment: null,
  });
  const masquerade = commented("masquerade", { kind: "set mark", how: "or", mark: settings.masqueradeMark });
  switch (kind) {
    case "pick":
    case "pick-local":
    case "pick-nodeport":
    case "pick-nodeport-local":
      return [chain([dnat(kind, protocol, slots, settings)])];
    case "external":
      return [chain([masquerade, dnat("pick", protocol, slots, settings)])];
    case "nodeport":
      return [chain([masquerade, dnat("pick-nodeport", protocol, slots, settings)])];
    case "external-local":
    case "nodeport-local": {
      const inside = picker(
        kind === "external-local" ? "pick" : "pick-nodeport",
        protocol,
        slots,
        settings,
      ).chains;
      const outside: Statement =
        kind === "external-local"
          ? { kind: "vmap", fields: byAddress, map: "local-service-ips" }
          : { kind: "vmap", fields: byNodePort, map: "local-nodeports" };
      return [chain([...shortCircuit(inside[0]!.name, settings), rule(outside)]), ...inside];
    }
  }
}

/** Policy Local depends on the sender: traffic from this node may use the whole cluster. */
export function shortCircuit(chain: string, settings: FamilySettings): readonly Rule[] {
  const pod = fromPod(settings.detector, false);
  const local: Statement = { kind: "fib local", field: "saddr" };
  const whole: Statement = { kind: "goto", chain };
  return [
    ...(pod === null ? [] : [commented("short-circuit pod traffic", pod, whole)]),
    commented("masquerade local traffic", local, {
      kind: "set mark",
      how: "or",
      mark: settings.masqueradeMark,
    }),
    commented("short-circuit local traffic", local, whole),
  ];
}

const slotMaps = {
  pick: { map: "endpoints", fields: byAddress },
  "pick-local": { map: "local-endpoints", fields: byAddress },
  "pick-nodeport": { map: "nodeport-endpoints", fields: byNodePort },
  "pick-nodeport-local": { map: "local-nodeport-endpoints", fields: byNodePort },
} as const;

function dnat(
  from: keyof typeof slotMaps,
  protocol: Protocol,
  slots: number,
  { traffic }: FamilySettings,
): Rule {
  const { map, fields } = slotMaps[from];
  return rule({ kind: "dnat by slot", protocol, slots, map: slotMap(map, traffic), fields });
}
