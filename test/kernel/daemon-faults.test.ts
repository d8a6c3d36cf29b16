// A machine and an API server that fail the daemon: clear words, a sensible end or a visible state, rules untouched.
import { writeFileSync } from "node:fs";
import type { Server } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ApiServerOptions } from "../../src/playground/api/server.ts";
import { connectInside, enter } from "../reference/foothold.ts";
import { reasonNotToShift, shiftedClock } from "./shifted-clock.ts";
import { shop } from "./shop.ts";
import { eventually, nodeObject, openSite, reasonNotToRun, type Site, sampleOf } from "./site.ts";

const reason = reasonNotToRun();

/** The command line that follows runs where /proc/sys cannot be written. */
const readOnlySysctls = [
  "unshare",
  "--mount",
  "sh",
  "-c",
  'mount --bind /proc/sys /proc/sys && mount -o remount,ro,bind /proc/sys && exec "$@"',
  "sh",
];
const withoutNetAdmin = ["setpriv", "--bounding-set", "-net_admin", "--inh-caps", "-net_admin"];

describe("a machine that refuses", () => {
  let site: Site;
  let taken: Server | null = null;
  beforeEach(async ({ skip }) => {
    skip(reason !== null, reason ?? "");
    site = await openSite();
    await site.openApi();
    for (const object of [nodeObject(), ...shop()]) site.api.put(object);
  });
  afterEach(async () => {
    taken?.close();
    await site?.close();
  });

  const rules = () => site.netns.run("nft", "list", "ruleset");

  it("a port that is taken: it serves all the same, and listens once the port is free", async () => {
    taken = await enter(site.netns).listen("127.0.0.1", 10256);
    const daemon = site.start();
    await daemon.ready();
    expect(daemon.log()).toMatch(/^E.*"Cannot serve".*EADDRINUSE.*server="healthz"/m);
    expect(rules()).toContain("172.30.0.10");
    taken.close();
    await eventually(async () => (await daemon.health())?.status === 200, "health on the freed port");
  });

  it("a port that is taken, with bindAddressHardFail: it ends with 1 and leaves an Event", async () => {
    taken = await enter(site.netns).listen("127.0.0.1", 10249);
    const { code, log } = await site.finish({ config: { bindAddressHardFail: true } });
    expect({ code, log }).toMatchObject({ code: 1 });
    expect(log).toContain("EADDRINUSE");
    const reasons = site.api.list("Event").map((event) => event.reason);
    expect(reasons).toContain("FailedToStartMetricServer");
  });

  it("settings that cannot be written: it ends with 1 and names the file; where none must be, it serves", async () => {
    const conntrack = { maxPerCore: 0, min: 0, tcpEstablishedTimeout: "3h7m0s" };
    const { code, log } = await site.finish({ config: { conntrack }, by: readOnlySysctls });
    expect({ code, log }).toMatchObject({ code: 1 });
    expect(log).toMatch(
      /Cannot set \/proc\/sys\/net\/netfilter\/nf_conntrack_tcp_timeout_established to 11220: EROFS/,
    );
    const daemon = site.start({ by: readOnlySysctls });
    await daemon.ready();
    expect(rules()).toContain("172.30.0.10");
  });

  it.each(["nftables", "iptables"])(
    "no CAP_NET_ADMIN in mode %s: it ends with 1 and says what it needs",
    async (mode) => {
      const { code, log } = await site.finish({ config: { mode }, by: withoutNetAdmin });
      expect({ code, log }).toMatchObject({ code: 1 });
      expect(log).toMatch(
        new RegExp(`^E.*Cannot use ${mode} mode: .*(CAP_NET_ADMIN|Permission denied)`, "m"),
      );
    },
  );

  it("--cleanup without CAP_NET_ADMIN: it ends with 1, tells of every mode, and removes nothing", async () => {
    const daemon = site.start();
    await daemon.ready();
    daemon.kill("SIGKILL");
    await daemon.ended();
    const { code, log } = await site.finish({ args: ["--cleanup"], by: withoutNetAdmin });
    expect({ code, log }).toMatchObject({ code: 1 });
    expect(log.match(/^E.*"Cannot clean up".*mode="\w+"/gm)?.length ?? 0).toBeGreaterThanOrEqual(2);
    expect(rules()).toContain("172.30.0.10");
  });

  it("a clock that is set, days forth and years back: health follows it, and nothing waits for it", async ({
    skip,
  }) => {
    const why = reasonNotToShift();
    if (why !== null) return skip(why);
    const clock = shiftedClock(site.folder);
    const daemon = site.start({ env: clock.env });
    await daemon.ready();
    const [day, year] = [86_400, 31_536_000];
    for (const [n, seconds] of [3600, -3600, 3 * day, -3 * year, 0].entries()) {
      clock.set(seconds);
      const { status, body } = (await daemon.health())!;
      expect({ seconds, status, body }).toMatchObject({ status: 200 });
      const { currentTime } = JSON.parse(body) as { currentTime: string };
      expect(Math.abs(Date.parse(currentTime) - Date.now() - seconds * 1000)).toBeLessThan(10_000);
      for (const object of shop({ clusterIP: `172.30.0.${90 + n}` })) site.api.put(object);
      const changedAt = Date.now();
      await eventually(() => rules().includes(`172.30.0.${90 + n}`), "the new address");
      expect(Date.now() - changedAt).toBeLessThan(10_000);
      const age = sampleOf(await daemon.metrics(), 'turnout_watch_age_seconds{resource="services"}');
      expect(age).toBeLessThan(600);
    }
    expect(daemon.running()).toBe(true);
  });

  it("ten thousand probes at once: all are answered, and Services are served on", async () => {
    const daemon = site.start();
    await daemon.ready();
    const probe = "GET /healthz HTTP/1.1\r\nHost: node\r\n\r\n";
    const sockets = Array.from({ length: 20 }, () => connectInside(site.netns, "127.0.0.1", 10256));
    let answers = 0;
    for (const socket of sockets) {
      socket.on("error", () => {});
      socket.setEncoding("utf8").on("data", (data: string) => {
        answers += data.split("HTTP/1.1 200").length - 1;
      });
      socket.write(probe.repeat(500));
    }
    for (const object of shop({ clusterIP: "172.30.0.99" })) site.api.put(object);
    await eventually(() => rules().includes("172.30.0.99"), "the new address");
    // An answer that is cut in the middle of its first line is not counted.
    await eventually(() => answers > 9_900, "answers");
    for (const socket of sockets) socket.destroy();
  });

  it("slow, greedy and senseless clients: health still answers", async () => {
    const daemon = site.start();
    await daemon.ready();
    const clients = Array.from({ length: 600 }, () => connectInside(site.netns, "127.0.0.1", 10256));
    for (const [i, client] of clients.entries()) {
      client.on("error", () => {});
      client.write(
        i % 2 === 0 ? "GET /healthz HTTP/1.1\r\nX-Slow: " : `GET /${"x".repeat(20_000)} HTTP/1.1\r\n`,
      );
    }
    await sleep(200);
    expect(await daemon.health()).toMatchObject({ status: 200 });
    for (const client of clients) client.destroy();
    expect(daemon.running()).toBe(true);
  });
});

describe("an API server that goes away", () => {
  let site: Site;
  const opened = async (options: ApiServerOptions = {}) => {
    site = await openSite(undefined, options);
    await site.openApi();
    for (const object of [nodeObject(), ...shop()]) site.api.put(object);
  };
  beforeEach(({ skip }) => skip(reason !== null, reason ?? ""));
  afterEach(() => site?.close());

  it("rules stay, health is good, the age of the watches shows it; back again, it needs no restart", async () => {
    await opened();
    const daemon = site.start();
    await daemon.ready();
    const before = site.netns.run("nft", "list", "ruleset");
    await site.api.close();
    await sleep(2500);
    expect(daemon.running()).toBe(true);
    expect(site.netns.run("nft", "list", "ruleset")).toBe(before);
    expect(await daemon.health()).toMatchObject({ status: 200 });
    const age = sampleOf(await daemon.metrics(), 'turnout_watch_age_seconds{resource="services"}');
    expect(age).toBeGreaterThan(1);
    for (const object of shop({ clusterIP: "172.30.0.99" })) site.api.put(object);
    await site.openApi();
    await eventually(
      () => site.netns.run("nft", "list", "ruleset").includes("172.30.0.99"),
      "the new address",
    );
    expect(daemon.log()).not.toContain("command failed");
  });

  it("a token that expired: rules stay; a new one in the file is found without a restart", async () => {
    let valid = "first";
    await opened({ token: () => valid });
    const tokenFile = join(site.folder, "token");
    writeFileSync(tokenFile, valid);
    const daemon = site.start();
    await daemon.ready();
    valid = "second";
    site.api.dropConnections();
    await sleep(1500);
    expect(daemon.running()).toBe(true);
    expect(await daemon.health()).toMatchObject({ status: 200 });
    writeFileSync(tokenFile, valid);
    for (const object of shop({ clusterIP: "172.30.0.99" })) site.api.put(object);
    await eventually(
      () => site.netns.run("nft", "list", "ruleset").includes("172.30.0.99"),
      "the new address",
    );
  });
});
