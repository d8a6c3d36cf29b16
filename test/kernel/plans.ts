// Our modes without a daemon: a cluster is compiled to a Plan, and the Plan is put into the node's kernel.
import { NftablesHost } from "../../src/host/nftables/host.ts";
import { families } from "../../src/model/address.ts";
import { compile as compileIptables } from "../../src/modes/iptables/compile.ts";
import { compile as compileNftables } from "../../src/modes/nftables/compile.ts";
import { print as printIptables } from "../../src/plan/iptables/print.ts";
import { diff } from "../../src/plan/nftables/diff.ts";
import { unfold } from "../../src/plan/nftables/plan.ts";
import { tableName } from "../../src/plan/nftables/types.ts";
import { routesFor } from "../scenario-routes.ts";
import { createNamespace, type Namespace } from "./netns.ts";
import type { ModeUnderTest } from "./oracle.ts";

export const nftablesPlan: ModeUnderTest = {
  name: "nftables",
  async apply({ node }, objects, settings) {
    for (const family of families) {
      const table = unfold(compileNftables(null, routesFor(objects, settings, "nftables", family)));
      const host = await NftablesHost.open({ family: family === "ipv4" ? "ip" : "ip6", netns: node.path });
      try {
        await host.apply(diff(null, table));
      } finally {
        await host.close();
      }
      checkListing(node, family === "ipv4" ? "ip" : "ip6");
    }
  },
  clear: async () => {},
};

export const iptablesPlan: ModeUnderTest = {
  name: "iptables",
  async apply({ node }, objects, settings) {
    for (const family of families) {
      const routes = routesFor(objects, settings, "iptables", family);
      const plan = compileIptables(null, routes, { invalidDropped: false, localhostNodePorts: false });
      const tool = family === "ipv4" ? "iptables-restore" : "ip6tables-restore";
      node.feed(printIptables(plan), tool, "-w", "5", "--noflush");
      if (routes.settings.localhostNodePorts) node.sysctl({ "net.ipv4.conf.all.route_localnet": 1 });
    }
  },
  clear: async () => {},
};

/** A person can list the table, a program can, and the listing loaded elsewhere gives the same listing. */
function checkListing(node: Namespace, family: "ip" | "ip6"): void {
  const list = ["list", "table", family, tableName];
  JSON.parse(node.run("nft", "-j", ...list));
  const listing = node.run("nft", ...list);
  const elsewhere = createNamespace();
  try {
    elsewhere.feed(listing, "nft", "-f", "-");
    const lines = (text: string) =>
      text
        .split(/[\n,]/)
        .map((line) => line.trim())
        .sort()
        .join("\n");
    if (lines(elsewhere.run("nft", ...list)) !== lines(listing))
      throw new Error(`Not loaded as listed:\n${listing}`);
  } finally {
    elsewhere.remove();
  }
}
