// The ipvs mode: virtual servers of IPVS, IP sets and a few iptables chains.
import { release as kernelRelease } from "node:os";
import { iptablesFamilies, requireIptables } from "../iptables/host/setup.ts";
import type { Mode } from "../mode.ts";
import { ipvsBehavior } from "./behavior.ts";
import { optionsOf } from "./compile.ts";
import { decideServed } from "./decide.ts";
import { jumps, ownChains } from "./foundation.ts";
import { ipvsDifferences } from "./host/differences.ts";
import { openIpvs } from "./host/driver.ts";
import { cleanUpIpvs, prepareIpvs, releaseIpvs } from "./host/setup.ts";
import { walkIpvsHost } from "./host/walk.ts";
import { ipvsLeftovers, missingForIpvs } from "./leftovers.ts";
import { previewIpvs } from "./preview.ts";
import { ipvsSysctls } from "./sysctls.ts";

export const ipvs: Mode = {
  name: "ipvs",
  behavior: ipvsBehavior,
  // The kernel reports no changes of virtual servers and sets.
  drift: "polled",
  conntrack: "shared",
  uncounted: null,
  deprecation: {
    reason: "IPVSDeprecation",
    text: "The ipvs proxier has been deprecated and will be disabled by default in Kubernetes 1.40 and removed in Kubernetes 1.43. Migrate to the 'nftables' proxier instead.",
  },
  modules: ["ip_vs", "nf_conntrack"],
  keepRules: { jumps, chains: ownChains },
  keepDuring: ["iptables"],

  decide: decideServed,
  preview: previewIpvs,
  families: () => iptablesFamilies("ipvs"),
  check: requireIptables,
  missing: missingForIpvs,
  leftovers: ipvsLeftovers,
  sysctls: ({ config }) => ipvsSysctls(config.ipvs.strictARP, kernelRelease()),
  prepare: ({ config, ...options }) => prepareIpvs(config, options),
  open: (family, { config, clock, settings, netns }) =>
    openIpvs({
      family,
      clock,
      traffic: settings[family].traffic,
      ...optionsOf(config),
      ...(netns === undefined ? {} : { netns }),
    }),
  differences: ipvsDifferences,
  walkHost: walkIpvsHost,
  cleanup: cleanUpIpvs,
  release: releaseIpvs,
};
