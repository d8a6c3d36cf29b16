// The life of the daemon as users run it: how it waits, starts, minds its Node, and ends.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { queryDaemon } from "../../src/observe/status/client.ts";
import { nodeName, places, twin } from "../places.ts";
import { httpGet } from "./http.ts";
import { shop, shopSlice } from "./shop.ts";
import {
  type Configuration,
  type Daemon,
  eventually,
  nodeIPs,
  nodeObject,
  openSite,
  reasonNotToRun,
  type Site,
  sampleOf,
} from "./site.ts";

const reason = reasonNotToRun();
const web = shop();
const syncs = 'kubeproxy_sync_proxy_rules_duration_seconds_count{ip_family="IPv4"}';
/** No Sync comes by itself. */
const unhurried = { nftables: { syncPeriod: "1h", minSyncPeriod: "10ms" } };

describe("the daemon", () => {
  let site: Site;
  beforeEach(async ({ skip }) => {
    skip(reason !== null, reason ?? "");
    site = await openSite();
  });
  afterEach(() => site?.close());

  /** Serves a Service and waits until the daemon does too. */
  async function started(config: Configuration = {}, env: Readonly<Record<string, string>> = {}) {
    await site.openApi();
    for (const object of [nodeObject(), ...web]) site.api.put(object);
    const daemon = site.start({ config, env });
    await daemon.ready();
    return daemon;
  }

  const rules = () => site.netns.run("nft", "list", "ruleset");

  /** How many Syncs there were, once no more come. */
  async function countSyncs(daemon: Daemon): Promise<number> {
    for (let last = -1; ; await sleep(500)) {
      const now = sampleOf(await daemon.metrics(), syncs);
      if (now === last) return now;
      last = now;
    }
  }

  it("02/1 neither exits nor listens while the API server cannot be reached, and starts once it can", async () => {
    const daemon = site.start();
    const refused = /^E.*"Cannot watch the API server; retrying" err=".*ECONNREFUSED/m;
    await eventually(() => refused.test(daemon.log()), "the reason");
    await sleep(1500);
    expect(daemon.running()).toBe(true);
    expect(await daemon.health()).toBeNull();
    expect(await daemon.metrics()).toBe("");
    site.api.put(nodeObject());
    for (const object of web) site.api.put(object);
    await site.openApi();
    await daemon.ready();
    expect(rules()).toContain("172.30.0.10");
    expect(await daemon.health()).toMatchObject({ status: 200 });
  });

  it("02/2 waits for its Node and uses the addresses that it comes with", async () => {
    await site.openApi();
    const daemon = site.start({ config: { nodePortAddresses: ["primary"] } });
    await eventually(() => site.api.watches({ resource: "nodes" }).length > 0, "a watch of the Node");
    await sleep(1000);
    expect(await daemon.health()).toBeNull();
    site.api.put(nodeObject());
    site.api.put({ ...web[0]!, spec: { ...(web[0]!.spec as object), type: "NodePort", ports: [nodePort] } });
    await daemon.ready();
    expect(rules()).toContain(`${places.host}`);
    expect(daemon.log()).toContain(`"Dual-stack" primary="ipv4" ipv4="${places.host}" ipv6="${nodeIPs[1]}"`);
  });

  it("turnout status works from the start: what the daemon waits for, and why", async () => {
    const socket = join(site.folder, "status.sock");
    const daemon = site.start({ program: "turnout run", args: [`--status-socket=${socket}`] });
    const status = () => queryDaemon(socket, "/").catch(() => null);
    const waitsFor = (what: string) => async () => (await status())?.waits?.for === what;
    const node = `Node "${nodeName}"`;
    const error = async () => (await status())?.watches.Node?.lastError?.message ?? "";
    await eventually(async () => (await error()) !== "", "word of a wait, and why");
    const first = await status();
    expect(first).toMatchObject({
      node: nodeName,
      families: [],
      waits: {
        for: `the first answer about ${node} from kubeconfig:${join(site.folder, "kubeconfig.json")}`,
        until: null,
      },
      watches: { Node: { synced: false, lastError: { message: expect.stringContaining("ECONNREFUSED") } } },
    });
    await site.openApi();
    await eventually(waitsFor(`${node} to exist and have an address`), "word of the next wait");
    expect(await daemon.health()).toBeNull();
    site.api.put(nodeObject());
    await daemon.ready();
    const { startedAt, pid } = first!;
    expect(await status()).toMatchObject({ startedAt, pid, families: ["ipv4", "ipv6"], waits: null });
    daemon.kill("SIGTERM");
    expect(await daemon.ended()).toBe(0);
    expect(existsSync(socket)).toBe(false);
  });

  it("the log contains versions and the node's addresses, and that an address is loopback", async () => {
    const daemon = await started({ bindAddress: "127.0.0.1" }, { NODE_OPTIONS: "" });
    expect(daemon.log()).toMatch(/^I.*"Version info" version="v1\.37/m);
    expect(daemon.log()).toMatch(/^I.*"Node.js settings" version="v\d+.*" NODE_OPTIONS=""$/m);
    expect(daemon.log()).toMatch(
      /^I.*"The address of this node is a loopback address" address="127.0.0.1"$/m,
    );
  });

  it("02/5 a label changes: it continues; the address changes: it ends with 1", async () => {
    const daemon = await started();
    site.api.put(nodeObject({ labels: { colour: "red" } }));
    await sleep(500);
    expect(daemon.running()).toBe(true);
    site.api.put(nodeObject({ addresses: ["192.168.0.9", twin(places.host)] }));
    expect(await daemon.ended()).toBe(1);
    expect(daemon.log()).toMatch(/Node IPs changed from \[192\.168\.0\.2 .*\] to \[192\.168\.0\.9 /);
    expect(rules()).toContain("172.30.0.10");
  });

  it("02/6 the order of its addresses changes: it ends with 1", async () => {
    const daemon = await started();
    site.api.put(nodeObject({ addresses: [...nodeIPs].reverse() }));
    expect(await daemon.ended()).toBe(1);
  });

  it("02/7 podCIDRs change: it ends with 1 only where it goes by them", async () => {
    const daemon = await started();
    const moved = nodeObject({ podCIDRs: ["10.180.7.0/24", "fd00:180:0:7::/64"] });
    site.api.put(moved);
    await sleep(500);
    expect(daemon.running()).toBe(true);
    daemon.kill("SIGTERM");
    await daemon.ended();
    const other = site.start({ config: { detectLocalMode: "NodeCIDR" } });
    await other.ready();
    expect(rules()).toContain("10.180.7.0/24");
    site.api.put(nodeObject());
    expect(await other.ended()).toBe(1);
    expect(other.log()).toContain("podCIDRs changed from [10.180.7.0/24 fd00:180:0:7::/64]");
  });

  it("02/8 its Node is deleted: it ends with 1", async () => {
    const daemon = await started();
    site.api.remove("Node", "", nodeName);
    expect(await daemon.ended()).toBe(1);
    expect(daemon.log()).toContain("was deleted");
  });

  it("02/11 without ip6tables it serves IPv4 alone, and not at all a node whose primary family is IPv6", async () => {
    const env = { PATH: site.pathWithout(/^ip6tables/) };
    await site.openApi();
    site.api.put(nodeObject());
    const daemon = site.start({ config: { mode: "iptables" }, env });
    await daemon.ready(["IPv4"]);
    expect(daemon.log()).toMatch(/"Single-stack" primary="ipv4"/);
    expect(await daemon.metrics()).not.toContain('ip_family="IPv6"');
    daemon.kill("SIGTERM");
    await daemon.ended();
    site.api.put(nodeObject({ addresses: [...nodeIPs].reverse() }));
    const { code, log } = await site.finish({ config: { mode: "iptables" }, env });
    expect(code).toBe(1);
    expect(log).toContain("this machine does not support ipv6, the primary family of this node");
  });

  it("02/12 with IPv6 switched off it serves IPv4 alone", async () => {
    site.netns.sysctl({ "net.ipv6.conf.all.disable_ipv6": 1 });
    await site.openApi();
    site.api.put(nodeObject());
    const daemon = site.start({ config: { healthzBindAddress: "0.0.0.0:10256" } });
    await daemon.ready(["IPv4"]);
    expect(rules()).not.toContain("table ip6");
    expect(await daemon.health()).toMatchObject({ status: 200 });
    expect((await daemon.health())?.body).not.toContain("IPv6");
  });

  it("02/34 another zone is one sync, an unrelated label none", async () => {
    const daemon = await started(unhurried);
    const before = await countSyncs(daemon);
    site.api.put(nodeObject({ labels: { colour: "red" } }));
    await sleep(500);
    expect(await countSyncs(daemon)).toBe(before);
    site.api.put(nodeObject({ labels: { colour: "red", "topology.kubernetes.io/zone": "east" } }));
    await eventually(async () => sampleOf(await daemon.metrics(), syncs) > before, "a sync");
    expect(await countSyncs(daemon)).toBe(before + 1);
  });

  it("02/39 a slice of type FQDN changes nothing; an invalid slice is logged once", async () => {
    const daemon = await started(unhurried);
    const [before, text] = [await countSyncs(daemon), rules()];
    site.api.put(
      shopSlice("web-names", { addressType: "FQDN", endpoints: [{ addresses: ["pod.example"] }] }),
    );
    await sleep(500);
    expect(await countSyncs(daemon)).toBe(before);
    site.api.put(shopSlice("web-lost", { metadata: { name: "web-lost", namespace: "shop", labels: {} } }));
    const errors = () => daemon.log().match(/^E.*"Object is not as expected".*web-lost/gm)?.length ?? 0;
    await eventually(() => errors() > 0, "an error in the log");
    site.api.put(nodeObject({ labels: { "topology.kubernetes.io/zone": "east" } }));
    await sleep(500);
    expect(errors()).toBe(1);
    expect(rules()).toBe(text);
  });

  it("02/36 a wildcard health address answers clients of both families", async () => {
    await started({ healthzBindAddress: "0.0.0.0:10256" });
    expect(await httpGet(site.netns, "http://[::1]:10256/livez")).toMatchObject({ status: 200 });
    expect(await httpGet(site.netns, "http://127.0.0.1:10256/livez")).toMatchObject({ status: 200 });
  });

  it.each(["nftables", "iptables"])(
    "02/38 user/5: SIGTERM ends it immediately, is logged, and leaves the rules of %s",
    async (mode) => {
      const daemon = await started({ mode });
      const list = () =>
        mode === "nftables" ? rules() : site.netns.run("iptables-save").replace(/\[\d+:\d+\]|^#.*$/gm, "");
      const before = list();
      expect(before).toContain("172.30.0.10");
      daemon.kill("SIGTERM");
      // The signal itself ended it.
      expect(await daemon.ended()).toBeNull();
      expect(list()).toBe(before);
      expect(daemon.log()).toMatch(
        /^I.*"Received a signal; exiting, rules stay in place" signal="SIGTERM"$/m,
      );
    },
  );

  it("user/5: turnout run ends in order on SIGTERM, with 0, logs it, and leaves the rules too", async () => {
    await site.openApi();
    for (const object of [nodeObject(), ...web]) site.api.put(object);
    const daemon = site.start({ program: "turnout run" });
    await daemon.ready();
    daemon.kill("SIGTERM");
    expect(await daemon.ended()).toBe(0);
    expect(daemon.log()).toMatch(/^I.*"Received a signal; exiting, rules stay in place" signal="SIGTERM"$/m);
    expect(rules()).toContain("172.30.0.10");
  });

  it.each([
    ["nftables", "tables=2"],
    ["iptables", "jumps=24 chains=\\d+"],
    ["userspace", "jumps=12 chains=12"],
  ])(
    "user/5: --cleanup logs what it removed of mode %s, and that there is nothing to remove",
    async (mode, counts) => {
      const daemon = await started({ mode });
      daemon.kill("SIGKILL");
      await daemon.ended();
      const cleanUp = async () => {
        const { code, log } = await site.finish({ args: ["--cleanup", "-v=0"] });
        const lines = log.match(
          /"(Nothing to remove|Removed what the mode had put on this node)" mode=.*$/gm,
        );
        return { code, lines: lines?.sort() };
      };
      const nothing = ["iptables", "ipvs", "nftables", "userspace"].map(
        (each) => `"Nothing to remove" mode="${each}"`,
      );
      const removed = new RegExp(`^"Removed what the mode had put on this node" mode="${mode}" ${counts}$`);
      expect(await cleanUp()).toEqual({
        code: 0,
        lines: [...nothing.filter((line) => !line.endsWith(`"${mode}"`)), expect.stringMatching(removed)],
      });
      expect(await cleanUp()).toEqual({ code: 0, lines: nothing });
    },
  );

  it.each(["nftables", "iptables"])(
    "--init-only in mode %s ends with 0 and writes no Service",
    async (mode) => {
      await site.openApi();
      for (const object of [nodeObject(), ...web]) site.api.put(object);
      const { code, log } = await site.finish({ config: { mode }, args: ["--init-only"] });
      expect({ code, log }).toMatchObject({ code: 0 });
      expect(rules()).not.toContain("172.30.0.10");
    },
  );
});

const nodePort = { name: "http", protocol: "TCP", port: 80, nodePort: 30080 };
