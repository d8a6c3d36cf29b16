// Real packets against the iptables mode on the legacy back end, applied by its own host.
import { existsSync } from "node:fs";
import { type Start, starter } from "../../src/host/iptables/command.ts";
import { openIptablesHost } from "../../src/host/iptables/host.ts";
import { families } from "../../src/model/address.ts";
import { removal } from "../../src/modes/iptables/removal.ts";
import { openIptables } from "../../src/sync/iptables.ts";
import { routesFor } from "../scenario-routes.ts";
import { manualClock } from "../support/manual-clock.ts";
import { describeConformance } from "./conformance.ts";
import type { ModeUnderTest } from "./judge.ts";
import { type Namespace, reasonToSkip } from "./netns.ts";

const isInstalled = existsSync("/usr/sbin/xtables-legacy-multi") || existsSync("/sbin/xtables-legacy-multi");

function legacyIn({ path }: Namespace): Start {
  const start = starter({ netns: path });
  return (program, ...rest) => start(program.replace(/^(ip6?tables)/, "$1-legacy"), ...rest);
}

const legacy: ModeUnderTest = {
  name: "iptables",
  async apply({ node }, objects, settings) {
    for (const family of families) {
      const options = {
        family,
        clock: manualClock(),
        canaryPeriodMs: () => 30_000,
        netns: node.path,
        start: legacyIn(node),
      };
      const driver = await openIptables(options);
      const routes = routesFor(objects, settings, "iptables", family);
      await driver.sync(routes, new AbortController().signal);
      if (routes.settings.localhostNodePorts) node.sysctl({ "net.ipv4.conf.all.route_localnet": 1 });
      await driver.close();
    }
  },
  async clear({ node }) {
    for (const family of families) {
      const host = await openIptablesHost(family, legacyIn(node));
      await host.apply(removal(await host.read()));
    }
  },
};

describeConformance({
  title: "iptables mode on the legacy back end",
  program: "turnout",
  mode: legacy,
  reasonToSkip: isInstalled ? reasonToSkip() : "iptables-legacy is not installed",
  // The foreign firewall of this scenario is nf_tables: accepting in legacy tables cannot overrule it.
  leavesOut: ({ scenario }) => scenario === "forward-policy-drop",
});
