// The iptables mode: the chains that kube-proxy writes.
import { decide } from "../../routing/decide.ts";
import type { Mode } from "../mode.ts";
import { iptablesBehavior } from "./behavior.ts";
import { iptablesDifferences } from "./host/differences.ts";
import { openIptables } from "./host/driver.ts";
import { cleanUpIptables, iptablesFamilies, prepareIptables, requireIptables } from "./host/setup.ts";
import { walkIptablesHost } from "./host/walk.ts";
import { iptablesLeftovers } from "./leftovers.ts";
import { previewIptables } from "./preview.ts";
import { iptablesSysctls } from "./sysctls.ts";

export const iptables: Mode = {
  name: "iptables",
  behavior: iptablesBehavior,
  drift: "watched",
  conntrack: "shared",
  uncounted:
    "iptables mode does not count connections and refused packets: the counters of its rules begin again when a Sync rewrites them; nftables mode counts them",
  deprecation: null,
  modules: ["x_tables", "nf_conntrack"],
  keepRules: null,
  keepDuring: [],

  decide: (routes, packet) => decide(routes, iptablesBehavior, packet),
  preview: previewIptables,
  families: () => iptablesFamilies("iptables"),
  check: requireIptables,
  missing: () => [],
  leftovers: iptablesLeftovers,
  sysctls: ({ settings }) => iptablesSysctls(settings.ipv4),
  prepare: (options) => prepareIptables(options.settings.ipv4, options),
  open: (family, { syncPeriodMs, clock, netns }) =>
    openIptables({ family, clock, canaryPeriodMs: syncPeriodMs, ...(netns === undefined ? {} : { netns }) }),
  differences: iptablesDifferences,
  walkHost: walkIptablesHost,
  cleanup: cleanUpIptables,
  release: cleanUpIptables,
};
