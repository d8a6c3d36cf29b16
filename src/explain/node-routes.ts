// The Routes of a node as a daemon there would make them, of its configuration and the Node object.
import { completeConfig } from "../config/complete.ts";
import type { ValidConfig } from "../config/config.ts";
import { type Resolved, resolve } from "../config/resolve/resolve.ts";
import type { TrafficSetting } from "../config/resolve/settings.ts";
import type { Address, Family } from "../model/address.ts";
import { same } from "../model/same.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { route } from "../routing/routes.ts";
import type { BothRoutes } from "./resolve.ts";

/** What only the machine itself has; without it the Node object is used. */
export type HostFacts = {
  readonly localAddresses?: Readonly<Record<Family, readonly Address[]>>;
  readonly tcpBeLiberal?: boolean;
  /** `--traffic` of the daemon; absent: off. */
  readonly traffic?: TrafficSetting;
};

/** `before`: the Routes of the Snapshot before, if there was one. */
export function nodeRoutes(
  snapshot: Snapshot,
  nodeName: string,
  config: ValidConfig,
  facts: HostFacts = {},
  before: BothRoutes | null = null,
): BothRoutes {
  const settings = nodeSettings(snapshot, nodeName, config, facts);
  const routesOf = (family: Family) => {
    const old = before?.[family] ?? null;
    const kept = same(old?.settings, settings[family]) ? old!.settings : settings[family];
    return route(old, snapshot[family], kept);
  };
  return { ipv4: routesOf("ipv4"), ipv6: routesOf("ipv6") };
}

export function nodeSettings(
  { node }: Pick<Snapshot, "node">,
  nodeName: string,
  config: ValidConfig,
  { localAddresses, tcpBeLiberal = false, traffic = "off" }: HostFacts = {},
): Resolved["settings"] {
  const addresses = node?.addresses ?? [];
  const { settings } = resolve(config, {
    nodeName,
    nodeIPs: addresses,
    podCIDRs: node?.podCIDRs ?? [],
    zone: node?.zone ?? "",
    localAddresses: localAddresses ?? {
      ipv4: addresses.filter((address) => !address.includes(":")),
      ipv6: addresses.filter((address) => address.includes(":")),
    },
    tcpBeLiberal,
    traffic,
  });
  return settings;
}

/** Without a configuration: kube-proxy's defaults, and the Node's podCIDRs show which pods are local. */
export function defaultConfig(mode: string): ValidConfig {
  const completed = completeConfig({ "proxy-mode": mode, "detect-local-mode": "NodeCIDR" }, null);
  if (!completed.ok) throw new Error(completed.error);
  return completed.config;
}
