// The configuration file changes under the running daemon: it ends as kube-proxy does, or applies what it can.
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { httpGet } from "./http.ts";
import { shop } from "./shop.ts";
import { eventually, nodeObject } from "./site.ts";
import { siteForEach } from "./site-each.ts";

describe("a changed configuration file", () => {
  const place = siteForEach([nodeObject(), ...shop()]);

  const rules = () => place.site.netns.run("nft", "list", "ruleset");

  it("ends kube-proxy with 1, and turnout run too unless configured otherwise", async () => {
    for (const program of ["kube-proxy", "turnout run"] as const) {
      const daemon = place.site.start({ program });
      await daemon.ready();
      place.site.configure({ clusterCIDR: "10.181.0.0/16" });
      expect(await daemon.ended()).toBe(1);
      expect(daemon.log()).toContain("exiting to restart with the new configuration");
    }
  });

  it("is applied by --config-changes=apply: rules follow, a broken file changes nothing", async () => {
    const daemon = place.site.start({ program: "turnout run", args: ["--config-changes=apply"] });
    await daemon.ready();
    expect(rules()).toContain("10.180.0.0/16");
    place.site.configure({ clusterCIDR: "10.181.0.0/16,fd00:181::/48" });
    await eventually(() => rules().includes("10.181.0.0/16"), "the new pod network in the rules");
    expect(rules()).not.toContain("10.180.0.0/16");
    expect(daemon.log()).toMatch(/"Changed setting is in force" field="clusterCIDR" from="10\.180/);
    const shown = await httpGet(place.site.netns, "http://127.0.0.1:10249/configz");
    expect(shown?.body).toContain("10.181.0.0/16");
    place.site.configure({ clusterCIDR: "nonsense" });
    await eventually(() => daemon.log().includes("the running one stays"), "word of the broken file");
    await sleep(500);
    expect(rules()).toContain("10.181.0.0/16");
    expect(daemon.running()).toBe(true);
  });

  it("behaviour/3: a changed mode is in force after an exit with 1 and the supervisor's restart", async () => {
    const args = ["--config-changes=apply"];
    const daemon = place.site.start({ program: "turnout run", args });
    await daemon.ready();
    place.site.configure({ mode: "iptables" });
    expect(await daemon.ended()).toBe(1);
    expect(daemon.log()).toMatch(/^I.*"Changed setting requires a restart" field="mode" from="nftables"/m);
    expect(daemon.log()).toMatch(/^I.*"Exiting to restart with the changed configuration"$/m);
    expect(rules()).toContain("kube-proxy");
    const next = place.site.start({ program: "turnout run", args, config: { mode: "iptables" } });
    await next.ready();
    expect(place.site.netns.run("iptables-save")).toContain("KUBE-SERVICES");
  });

  it("behaviour/3: a change with which this node cannot start changes nothing", async () => {
    const args = ["--config-changes=apply"];
    const PATH = place.site.pathWithout(/iptables|ip6tables/);
    const daemon = place.site.start({ program: "turnout run", args, env: { PATH } });
    await daemon.ready();
    place.site.configure({ mode: "iptables" });
    // A line that is being written may be read in part.
    await expect
      .poll(() => daemon.log())
      .toMatch(/^E.*"Changed setting is not in force" err=".*Cannot use iptables.*field="mode"/m);
    expect(daemon.running()).toBe(true);
  });

  it("behaviour/3: apply-live-only leaves a changed mode for later", async () => {
    const daemon = place.site.start({ program: "turnout run", args: ["--config-changes=apply-live-only"] });
    await daemon.ready();
    place.site.configure({ mode: "iptables" });
    await eventually(() => daemon.log().includes("Changed setting is not in force"), "a line about it");
    expect(daemon.running()).toBe(true);
  });

  it("does not put in force what this node could not start with", async () => {
    place.site.netns.sysctl({ "net.ipv6.conf.all.disable_ipv6": 1 });
    const daemon = place.site.start({ program: "turnout run", args: ["--config-changes=apply"] });
    await daemon.ready(["IPv4"]);
    const before = rules();
    place.site.configure({ clusterCIDR: "fd00:181::/48" });
    await eventually(() => daemon.log().includes("Cannot put changed settings in force"), "a refusal");
    expect(daemon.log()).toContain("clusterCIDR has only IPv6 entries");
    await sleep(300);
    expect(rules()).toBe(before);
    expect(daemon.running()).toBe(true);
  });

  it("reports warnings about a changed file once", async () => {
    const daemon = place.site.start({ program: "turnout run", args: ["--config-changes=apply"] });
    await daemon.ready();
    const errors = () =>
      daemon.log().match(/^E.*does not fit this node.*clusterCIDR has only IPv6/gm)?.length;
    for (const clusterCIDR of ["fd00:181::/48", "fd00:182::/48"]) {
      place.site.configure({ clusterCIDR });
      await eventually(() => rules().includes(clusterCIDR), `${clusterCIDR} in the rules`);
    }
    expect(errors()).toBe(1);
  });
});
