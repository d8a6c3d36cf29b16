// Large ServicePorts and long lists of source ranges in a real kernel: listed, read back, repaired, and crossed into with traffic.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { NftablesHost } from "../../src/host/nftables/host.ts";
import { parseCidr } from "../../src/model/address.ts";
import { compile } from "../../src/modes/nftables/compile.ts";
import { type NftablesDriver, openNftables } from "../../src/modes/nftables/host/driver.ts";
import { diff } from "../../src/plan/nftables/diff.ts";
import { unfold } from "../../src/plan/nftables/plan.ts";
import { places } from "../places.ts";
import { endpoint, ipv4Settings, ipv6Settings, routed, servicePort } from "../support/routed.ts";
import { createNamespace, isRoot, type Namespace, reasonToSkip } from "./netns.ts";
import { steadyTraffic } from "./traffic.ts";
import { createWorld } from "./world.ts";

const { signal } = new AbortController();

describe.skipIf(!isRoot)("large Services in the kernel", () => {
  let here: Namespace;
  let driver: NftablesDriver;

  beforeEach(async () => {
    here = createNamespace();
    driver = await openNftables({ family: "ip", netns: here.path });
  });

  afterEach(async () => {
    await driver.close();
    here.remove();
  });

  it("security/3: 1,000 addresses × 1,000 endpoints are listed, compared and repaired", async () => {
    const port = servicePort("shop/wide", {
      externalIPs: Array.from({ length: 1000 }, (_, i) => `198.18.${i >> 8}.${i & 255}`),
      endpoints: Array.from({ length: 1000 }, (_, i) => endpoint(`10.9.${i >> 8}.${i & 255}:80`)),
    });
    const { operations } = await driver.sync(routed([port]), signal);
    expect(operations).toBeLessThan(2200);
    expect(here.run("nft", "list", "ruleset")).toMatch(
      /meta l4proto tcp dnat ip to numgen random mod 1000 map @endpoints-\w+-shop\/wide\/tcp\//,
    );
    expect(JSON.parse(here.run("nft", "-j", "list", "ruleset"))).toHaveProperty("nftables");
    expect(await driver.verify(signal)).toEqual({ differences: 0 });

    const [map] = /endpoints-\w+-shop\/wide\/tcp\//.exec(here.run("nft", "list", "maps"))!;
    here.run("nft", "delete", "element", "ip", "kube-proxy", map, "{ 7 }");
    here.run("nft", "flush", "chain", "ip", "kube-proxy", map.replace("endpoints-", "external-"));
    expect((await driver.verify(signal)).differences).toBeGreaterThan(1);
    expect(await driver.verify(signal)).toEqual({ differences: 0 });

    const second = await openNftables({ family: "ip", netns: here.path });
    const fewer = { ...port, endpoints: port.endpoints.slice(0, -1) };
    // The rule is written again, and one slot is deleted.
    expect(await second.sync(routed([fewer]), signal)).toMatchObject({ readBack: true, operations: 3 });
    await second.close();
  });

  it.each([1000, 10_000, 50_000])(
    "security/2: %i source ranges of two ports and addresses",
    async (count) => {
      const more = {
        loadBalancerIPs: ["198.51.100.1", "198.51.100.2"],
        sourceRanges: Array.from(
          { length: count },
          (_, i) => `${20 + (i >> 16)}.${(i >> 8) & 255}.${i & 255}.0/28`,
        ),
        endpoints: [endpoint("10.180.0.1:80")],
      };
      const ports = [servicePort("shop/web:a", more), servicePort("shop/web:b", { ...more, port: 443 })];
      const [first, ...rest] = await Promise.all([driver.sync(routed(ports), signal)]);
      expect(rest).toEqual([]);
      expect(first!.operations - count).toBeLessThan(100);
      expect(await driver.verify(signal)).toEqual({ differences: 0 });
    },
  );
});

describe.skipIf(!isRoot)("source ranges in the kernel", () => {
  it.each([
    [
      "ip",
      ipv4Settings,
      ["0.0.0.0/32", "10.0.0.0/24", "10.0.1.0/24", "10.0.2.0/32", "10.0.2.1/32", "255.255.255.0/24"],
    ],
    ["ip6", ipv6Settings, ["::/128", "fd00::/64", "fd00:0:0:1::/64", "fd00:0:0:2::/128", "ffff::/16"]],
  ] as const)(
    "security/2: neighbours and ends of the address space are read back, %s",
    async (family, settings, ranges) => {
      const here = createNamespace();
      const host = await NftablesHost.open({ family, netns: here.path });
      try {
        const isIPv4 = family === "ip";
        const tableOf = (sourceRanges: readonly string[]) => {
          const port = servicePort("shop/web", {
            family: isIPv4 ? "ipv4" : "ipv6",
            clusterIP: isIPv4 ? "172.30.0.10" : "fd30::10",
            loadBalancerIPs: [isIPv4 ? "198.51.100.1" : "fd98::1"],
            sourceRanges: sourceRanges.map((range) => parseCidr(range)!),
          });
          return unfold(compile(null, routed([port], settings)));
        };
        for (const want of [tableOf(ranges), tableOf(ranges.slice(1)), tableOf([...ranges].reverse())]) {
          await host.apply(diff(await host.read(want), want));
          expect(diff(await host.read(want), want)).toEqual([]);
        }
      } finally {
        await host.close();
        here.remove();
      }
    },
  );
});

const reason = reasonToSkip();
const root = join(import.meta.dirname, "..", "..");

describe("a Service that becomes large and small again", () => {
  it("security/3: no packet is lost while the layout changes", { timeout: 120_000 }, async ({ skip }) => {
    skip(reason !== null, reason ?? "");
    const world = await createWorld();
    const folder = mkdtempSync(join(tmpdir(), "turnout-crossing-"));
    try {
      const { syncs, end, kill } = await startCrossing(folder, world.node.path);
      onTestFinished(kill);
      await expect.poll(syncs, { timeout: 30_000 }).toBeGreaterThan(1);
      const traffic = steadyTraffic(world, flows, 2);
      const [before, sentBefore] = [syncs(), traffic.sent()];
      await expect
        .poll(() => syncs() - before >= 60 && traffic.sent() - sentBefore >= 600, { timeout: 60_000 })
        .toBe(true);
      expect(await traffic.stop()).toEqual([]);
      expect(await end()).toEqual({ code: 0, complaints: "" });
    } finally {
      await world.close();
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

/** In a separate process: packets must be sent at every moment of a transaction. */
async function startCrossing(folder: string, netns: string) {
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  const outfile = join(folder, "crossing.cjs");
  await build({
    absWorkingDir: root,
    entryPoints: ["test/kernel/crossing.ts"],
    outfile,
    bundle: true,
    platform: "node",
    target: "node26",
    format: "cjs",
    external: ["koffi"],
    logLevel: "silent",
  });
  const child = spawn(process.execPath, [outfile, netns], { stdio: ["pipe", "pipe", "pipe"] });
  let [lines, complaints] = [0, ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    lines += text.split("\n").length - 1;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    complaints += text;
  });
  const gone = once(child, "exit");
  return {
    syncs: () => lines,
    kill: () => void child.kill("SIGKILL"),
    end: async () => {
      child.stdin.write("end\n");
      const [code] = (await gone) as [number];
      return { code, complaints };
    },
  };
}

const flows = [
  { from: { kind: "pod", address: places.L2 }, to: { address: "172.30.0.200", port: 80, protocol: "udp" } },
  {
    from: { kind: "node", address: places.host },
    to: { address: "172.30.0.200", port: 80, protocol: "udp" },
  },
  {
    from: { kind: "outside", address: places.X },
    to: { address: places.host, port: 30_200, protocol: "udp" },
  },
] as const;
