// The nftables mode: one table per IP family, with verdict maps.
import { cleanUpNftables, nftablesFamilies, requireNftables } from "../../host/nftables/support.ts";
import { nftFamilyOf } from "../../plan/nftables/types.ts";
import { decide } from "../../routing/decide.ts";
import type { Mode, Netns } from "../mode.ts";
import { nftablesBehavior } from "./behavior.ts";
import { nftablesDifferences } from "./host/differences.ts";
import { openNftables } from "./host/driver.ts";
import { nftablesPinned } from "./host/pinned.ts";
import { walkNftablesHost } from "./host/walk.ts";
import { previewNftables } from "./preview.ts";

export const nftables: Mode = {
  name: "nftables",
  behavior: nftablesBehavior,
  drift: "watched",
  conntrack: "shared",
  uncounted: null,
  deprecation: null,
  modules: ["nf_tables", "nf_conntrack"],
  keepRules: null,
  keepDuring: [],

  decide: (routes, packet) => decide(routes, nftablesBehavior, packet),
  preview: previewNftables,
  families: nftablesFamilies,
  check: async (at) => requireNftables({ ...at, families: await nftablesFamilies() }),
  missing: () => [],
  leftovers: () => [],
  sysctls: () => [],
  prepare: requireNftables,
  open: (family, { netns, owned, settings, clock }) =>
    openNftables({
      family: nftFamilyOf(family),
      counts: settings[family].traffic !== "off",
      clock,
      ...(netns === undefined ? {} : { netns }),
      ...(owned === undefined ? {} : { owned }),
    }),
  differences: nftablesDifferences,
  walkHost: walkNftablesHost,
  pinned: nftablesPinned,
  cleanup: removeTables,
  release: removeTables,
};

async function removeTables(at: Netns) {
  return { tables: await cleanUpNftables(at) };
}
