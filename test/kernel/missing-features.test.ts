// Machines that lack what a mode needs: programs, a family, a part of the kernel. What the daemon reports, and its exit code.
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { kernelArgs, reasonNotToBoot } from "../uml/boot.ts";
import { kernelEnv } from "../uml/registers.ts";
import { shop } from "./shop.ts";
import { eventually, nodeIPs, nodeObject, reasonNotToRun } from "./site.ts";
import { siteForEach } from "./site-each.ts";

const reason = reasonNotToRun();

describe("a machine without", () => {
  const place = siteForEach([nodeObject(), ...shop()]);

  const ipv6First = () => place.site.api.put(nodeObject({ addresses: [...nodeIPs].reverse() }));

  it.each(["iptables", "userspace", "ipvs"])(
    "iptables programs: mode %s ends with 1 and names itself and them",
    async (mode) => {
      const env = { PATH: place.site.pathWithout(/^ip6?tables/) };
      const { code, log } = await place.site.finish({ config: { mode }, env });
      expect({ code, log }).toMatchObject({ code: 1 });
      expect(log).toMatch(
        new RegExp(
          `^E.*"command failed" err="Cannot use ${mode} mode: ipv4: Cannot run iptables: ENOENT`,
          "m",
        ),
      );
      expect(log).toContain("ipv6: Cannot run ip6tables: ENOENT");
    },
  );

  it("any program: nftables mode needs none, and --cleanup has nothing to do", async () => {
    const env = { PATH: place.site.pathWithout(/^(ip6?tables|nft)/) };
    const daemon = place.site.start({ env });
    await daemon.ready();
    expect(place.site.netns.run("nft", "list", "ruleset")).toContain("172.30.0.10");
    daemon.kill("SIGTERM");
    await daemon.ended();
    expect(daemon.log()).not.toMatch(/^E.*(ENOENT|Leftovers)/m);
    const { code, log } = await place.site.finish({ args: ["--cleanup"], env });
    expect({ code, log }).toMatchObject({ code: 0 });
    expect(place.site.netns.run("nft", "list", "ruleset")).not.toContain("kube-proxy");
  });

  it.each(["nftables", "iptables"])(
    "IPv6: mode %s serves IPv4 alone, and no node that is IPv6 first",
    async (mode) => {
      place.site.netns.sysctl({ "net.ipv6.conf.all.disable_ipv6": 1 });
      const daemon = place.site.start({ config: { mode } });
      await daemon.ready(["IPv4"]);
      expect(daemon.log()).toMatch(/"Single-stack" primary="ipv4"/);
      daemon.kill("SIGTERM");
      await daemon.ended();
      ipv6First();
      const { code, log } = await place.site.finish({ config: { mode } });
      expect({ code, log }).toMatchObject({ code: 1 });
      expect(log).toContain("this machine does not support ipv6, the primary family of this node");
    },
  );

  it("iptables for IPv4: iptables mode serves a node that is IPv6 first, by IPv6 alone", async () => {
    ipv6First();
    const env = { PATH: place.site.pathWithout(/^iptables/) };
    const daemon = place.site.start({ config: { mode: "iptables" }, env });
    await daemon.ready(["IPv6"]);
    expect(daemon.log()).toMatch(/"Single-stack" primary="ipv6"/);
    await eventually(() => /^:KUBE-SERVICES/m.test(place.site.netns.run("ip6tables-save")), "rules of IPv6");
    expect(place.site.netns.run("iptables-save")).not.toContain("KUBE-SERVICES");
  });
});

describe("a kernel without", () => {
  const root = join(import.meta.dirname, "..", "..");
  const why = reason ?? reasonNotToBoot();
  let printed: ReadonlyMap<string, string> = new Map();

  beforeAll(() => {
    if (why !== null) return;
    const args = ["mem=512M", ...kernelArgs("lacking.sh"), `ROOT=${root}`];
    const output = execFileSync("/usr/bin/linux", args, {
      env: kernelEnv(),
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
      timeout: 230_000,
      killSignal: "SIGKILL",
    });
    const parts = output.split(/^== (.*)\r?\n/m).slice(1);
    printed = new Map(
      parts.flatMap((name, i) => (i % 2 === 0 ? [[name.trim(), parts[i + 1]!] as const] : [])),
    );
  });
  beforeEach(({ skip }) => skip(why !== null, why ?? ""));

  it("nf_tables: nftables mode ends with 1 and names the family", () => {
    expect(printed.get("nftables")).toMatch(
      /^E.*"command failed" err="Cannot use nftables mode: this kernel takes no table of family ip \(EOPNOTSUPP\)"/m,
    );
    expect(printed.get("nftables")).toContain("exit code 1");
  });

  it("10/48 a match that all rules need: nothing is written, it is retried, health and metrics report the reason", () => {
    const text = printed.get("iptables without xt_comment");
    expect(text).toContain("HTTP/1.1 503");
    expect(text).toMatch(/"kind":"failing","family":"IPv4".*Extension comment .*missing kernel module/);
    expect(text).toMatch(
      /^kubeproxy_sync_proxy_rules_iptables_restore_failures_total{ip_family="IPv4"} ([2-9]|[1-9][0-9])/m,
    );
    expect(text).not.toContain("-d 172.30.0.10");
  });

  it("a match that one Service needs: the others are served, health and metrics name the one", () => {
    const text = printed.get("iptables without xt_recent");
    expect(text).toContain("HTTP/1.1 200");
    expect(text).toMatch(/"kind":"refused","family":"IPv4".*Service shop\/sticky.*Extension recent/);
    expect(text).toMatch(
      /^kubeproxy_sync_proxy_rules_iptables_restore_failures_total{ip_family="IPv4"} [1-9]/m,
    );
    expect(text).toContain('turnout_refused_objects{ip_family="IPv4"} 1');
    expect(text).toContain("-d 172.30.0.10/32");
    expect(text).not.toContain("-d 172.30.0.11/32");
  });
});
