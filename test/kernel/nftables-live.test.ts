// Settings and tables that change while the nftables mode is at work, and what it leaves alone, in a real kernel.
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { FamilySettings } from "../../src/config/resolve/settings.ts";
import { readCounters } from "../../src/host/netlink/ruleset.ts";
import { cleanUpNftables } from "../../src/host/nftables/support.ts";
import type { ServicePort } from "../../src/model/snapshot.ts";
import { type NftablesDriver, openNftables } from "../../src/modes/nftables/host/driver.ts";
import { endpoint, ipv4Settings, routed, servicePort } from "../support/routed.ts";
import { createNamespace, isRoot, type Namespace } from "./netns.ts";

const primary: FamilySettings = {
  ...ipv4Settings,
  nodePortAddresses: { kind: "some", cidrs: ["192.168.0.2/32"] },
};
const everywhere: FamilySettings = { ...ipv4Settings, nodePortAddresses: { kind: "all" } };

describe.skipIf(!isRoot)("a live nftables table", () => {
  let here: Namespace;
  let driver: NftablesDriver;
  const { signal } = new AbortController();

  beforeEach(async () => {
    here = createNamespace();
    here.ip("link set lo up");
    driver = await openNftables({ family: "ip", netns: here.path });
  });

  afterEach(async () => {
    await driver.close();
    here.remove();
  });

  const sync = async (settings: FamilySettings, ports: readonly ServicePort[] = nodePorts()) => {
    await driver.sync(routed(ports, settings), signal);
    expect(await driver.verify(signal)).toEqual({ differences: 0 });
  };
  const listing = () => here.run("nft", "list", "ruleset");

  it("11/31 switches between some and all addresses for NodePorts, there and back", async () => {
    await sync(primary);
    expect(listing()).toContain("nodeport-ips");
    await sync(everywhere);
    expect(listing()).not.toContain("nodeport-ips");
    await sync(primary);
    expect(listing()).toContain("ip daddr @nodeport-ips meta l4proto . th dport vmap @service-nodeports");
  });

  it("11/34 11/37 switches NodePorts on loopback between refused, served and left alone", async () => {
    for (const nftLocalhost of ["reject", "serve", "reject", "pass", "serve", "pass"] as const) {
      await sync({ ...primary, nftLocalhost });
      const traces = new Set(
        [...listing().matchAll(/localhost-nodeport-reject-(tcp|udp|sctp)/g)].map(([, name]) => name),
      );
      const refused = { reject: ["tcp", "udp", "sctp"], serve: ["sctp"], pass: [] }[nftLocalhost];
      expect(traces).toEqual(new Set(refused));
      expect(listing().includes("localhost")).toBe(nftLocalhost !== "pass");
    }
  });

  it("11/34 removes loopback elements of an earlier run", async () => {
    await sync({ ...primary, nftLocalhost: "reject" });
    const next = await openNftables({ family: "ip", netns: here.path });
    await next.sync(routed(nodePorts(), primary), signal);
    expect(listing()).not.toContain("localhost");
    await next.close();
  });

  it("11/35 11/36 11/58 refuses and counts on loopback, and the counters survive syncs and restarts", async () => {
    const rejecting: FamilySettings = { ...primary, nftLocalhost: "reject" };
    await sync(rejecting);
    const knock = () =>
      here.run(
        "bash",
        "-c",
        "for i in 1 2 3; do (echo x > /dev/udp/127.0.0.1/30080) 2>/dev/null; done; true",
      );
    const refused = async () =>
      Object.fromEntries(
        (await readCounters("ip", "kube-proxy", { netns: here.path })).map(({ name, counter }) => [
          name,
          Number(counter.packets),
        ]),
      );
    knock();
    expect(await refused()).toEqual({
      "localhost-nodeport-rejected-tcp": 0,
      "localhost-nodeport-rejected-udp": 3,
      "localhost-nodeport-rejected-sctp": 0,
    });
    await sync(rejecting, nodePorts().slice(1));
    await sync(rejecting);
    const next = await openNftables({ family: "ip", netns: here.path });
    await next.sync(routed(nodePorts(), rejecting), signal);
    await next.close();
    knock();
    expect(await refused()).toMatchObject({ "localhost-nodeport-rejected-udp": 6 });
  });

  it("11/51 takes a table over whose base chains have other priorities", async () => {
    here.feed(
      `table ip kube-proxy {
        chain nat-prerouting { type nat hook prerouting priority -90; }
        chain filter-input { type filter hook input priority 5; }
      }`,
      "nft",
      "-f",
      "-",
    );
    await sync(primary);
    expect(listing()).toContain("type nat hook prerouting priority dstnat; policy accept;");
    const handle = () =>
      /chain nat-prerouting \{ # handle (\d+)/.exec(here.run("nft", "-a", "list", "ruleset"))![1];
    const before = handle();
    await sync(everywhere);
    expect(handle()).toBe(before);
  });

  it("11/52 11/53 leaves foreign tables alone, and --cleanup removes both of ours, also when they are gone", async () => {
    const foreign = ["ip", "ip6", "inet"]
      .map((family) => `table ${family} other {\n chain c {\n drop\n }\n}`)
      .join("\n");
    here.feed(foreign, "nft", "-f", "-");
    const before = listing();
    await sync(primary);
    await driver.sync(routed([], primary), signal);
    for (const family of ["ip", "ip6", "inet"] as const)
      expect(here.run("nft", "list", "table", family, "other")).toContain("drop");
    here.run("nft", "add", "table", "ip6", "kube-proxy");
    await cleanUpNftables({ netns: here.path });
    expect(listing()).toBe(before);
    await cleanUpNftables({ netns: here.path });
    expect(listing()).toBe(before);
  });

  it("11/10 11/8 takes the longest names and comments", async () => {
    const longest = `${"n".repeat(63)}/${"s".repeat(63)}:${"p".repeat(63)}`;
    const more = { protocol: "sctp", nodePort: 30_099 } as const;
    await sync(primary, [
      servicePort(longest, { ...more, affinity: { seconds: 60 }, endpoints: [endpoint("10.180.0.1:8080")] }),
    ]);
    await sync(primary, [servicePort(longest, more)]);
    expect(listing()).toContain(
      `comment "${`${"n".repeat(63)}/${"s".repeat(63)}:`.slice(0, 128)}" : goto reject-chain`,
    );
  });
});

function nodePorts(): ServicePort[] {
  return (["udp", "tcp", "sctp"] as const).map((protocol, i) =>
    servicePort(`shop/${protocol}`, {
      protocol,
      clusterIP: `172.30.0.${10 + i}`,
      nodePort: 30_080,
      endpoints: [endpoint("10.180.0.1:8080"), endpoint("10.180.1.1:8080")],
    }),
  );
}
