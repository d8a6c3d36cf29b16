// The userspace mode: iptables rules lead to relays in this process.
import { milliseconds } from "../../config/units/duration.ts";
import { parsePortRange } from "../../config/units/port-range.ts";
import { iptablesFamilies, requireIptables } from "../iptables/host/setup.ts";
import type { Mode } from "../mode.ts";
import { userspaceBehavior } from "./behavior.ts";
import { bindAddressOf } from "./bind-address.ts";
import { decideRelayed } from "./decide.ts";
import { userspaceDifferences } from "./host/differences.ts";
import { openUserspace } from "./host/driver.ts";
import { cleanUpUserspace, mustNotBindLoopback, releaseUserspace } from "./host/setup.ts";
import { walkUserspaceHost } from "./host/walk.ts";
import { previewUserspace } from "./preview.ts";

/** The kernel's default timeout of a UDP flow without replies. */
const defaultUdpIdleMs = 30_000;

export const userspace: Mode = {
  name: "userspace",
  behavior: userspaceBehavior,
  // The rules include no canary chain.
  drift: "polled",
  conntrack: "own",
  uncounted: null,
  deprecation: null,
  modules: ["x_tables", "nf_conntrack"],
  keepRules: null,
  keepDuring: [],

  decide: decideRelayed,
  preview: previewUserspace,
  families: () => iptablesFamilies("userspace"),
  check: requireIptables,
  missing: () => [],
  leftovers: () => [],
  sysctls: () => [],
  prepare: async ({ config }) => mustNotBindLoopback(config.bindAddress),
  open: (family, { config, clock, settings }) => {
    const range = parsePortRange(config.portRange);
    return openUserspace({
      family,
      clock,
      traffic: settings[family].traffic,
      bind: bindAddressOf(family, config.bindAddress),
      portRange: range.ok ? range.value : null,
      udpIdleMs: milliseconds(config.conntrack.udpTimeout) || defaultUdpIdleMs,
    });
  },
  differences: userspaceDifferences,
  walkHost: walkUserspaceHost,
  cleanup: cleanUpUserspace,
  release: releaseUserspace,
};
