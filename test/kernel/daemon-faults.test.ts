// Failures of the machine and the API server: a clear message, a sensible exit or a visible state, rules untouched.
import { writeFileSync } from "node:fs";
import type { Server } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ApiServerOptions } from "../../playground/api/server.ts";
import { connectInside, enter } from "../reference/foothold.ts";
import { serverCert, serverKey } from "../support/certificates.ts";
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
const lacksNetAdmin = /^Error: cannot start: it requires the capability NET_ADMIN.*\n$/;
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

  it.each(["nftables", "iptables", "ipvs", "userspace"])(
    "user/5: no CAP_NET_ADMIN in mode %s: it ends with 1 and one line about what it needs",
    async (mode) => {
      const { code, log } = await site.finish({ config: { mode }, by: withoutNetAdmin });
      expect({ code, log }).toEqual({ code: 1, log: expect.stringMatching(lacksNetAdmin) });
    },
  );

  it("user/5: --cleanup without CAP_NET_ADMIN: it ends with 1 and one line, and removes nothing", async () => {
    const daemon = site.start();
    await daemon.ready();
    daemon.kill("SIGKILL");
    await daemon.ended();
    const { code, log } = await site.finish({ args: ["--cleanup"], by: withoutNetAdmin });
    expect({ code, log }).toEqual({ code: 1, log: expect.stringMatching(lacksNetAdmin) });
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
      expect(Math.abs(Date.parse(currentTime) - Date.now() - seconds * 1000)).toBeLessThan(60_000);
      for (const object of shop({ clusterIP: `172.30.0.${90 + n}` })) site.api.put(object);
      await eventually(() => rules().includes(`172.30.0.${90 + n}`), "the new address");
      const age = sampleOf(await daemon.metrics(), 'turnout_watch_age_seconds{resource="services"}');
      expect(age).toBeLessThan(600);
    }
    expect(daemon.running()).toBe(true);
  });

  it("30,000 probes, 1,000 of them at any time: each is answered, and Services are served on", async () => {
    const daemon = site.start();
    await daemon.ready();
    const counted = async () => sampleOf(await daemon.metrics(), 'kubeproxy_proxy_healthz_total{code="200"}');
    const before = await counted();
    const [clients, rounds, batch] = [20, 30, 50];
    const since = Date.now();
    const probing = Promise.all(
      Array.from({ length: clients }, () => probe(site, "/healthz", rounds, batch)),
    );
    for (const object of shop({ clusterIP: "172.30.0.99" })) site.api.put(object);
    await eventually(() => rules().includes("172.30.0.99"), "the new address");
    const answers = (await probing).reduce((sum, each) => sum + each, 0);
    const perSecond = Math.round(answers / ((Date.now() - since) / 1000));
    process.stdout.write(`${answers} probes, ${perSecond} in a second\n`);
    expect([answers, (await counted()) - before]).toEqual([30_000, 30_000]);
    expect(await daemon.health("/livez")).toMatchObject({ status: 200 });
  });

  it("10,000 probes a second, whether it can answer them or not: Services follow, and it is healthy and small afterwards", async () => {
    const daemon = site.start();
    await daemon.ready();
    const residentMiB = async () =>
      sampleOf(await daemon.metrics(), "process_resident_memory_bytes") / 2 ** 20;
    const before = await residentMiB();
    const clients = Array.from({ length: 100 }, () => connectInside(site.netns, "127.0.0.1", 10256));
    for (const client of clients) client.on("error", () => {}).resume();
    const ten = "GET /healthz HTTP/1.1\r\nHost: node\r\n\r\n".repeat(10);
    for (let tenths = 0; tenths < 30; tenths++, await sleep(100)) {
      for (const client of clients) if (!client.destroyed) client.write(ten);
      if (tenths === 10) for (const object of shop({ clusterIP: "172.30.0.99" })) site.api.put(object);
    }
    await eventually(() => rules().includes("172.30.0.99"), "the new address");
    for (const client of clients) client.destroy();
    await eventually(async () => (await daemon.health())?.status === 200, "health");
    // Requests that wait for a busy machine take memory until they are answered.
    await expect.poll(async () => (await residentMiB()) - before).toBeLessThan(100);
  });

  it("clients that never come to an end: newcomers are answered, and the slow ones are shown the door", async () => {
    const daemon = site.start();
    await daemon.ready();
    const clients = Array.from({ length: 600 }, () => connectInside(site.netns, "127.0.0.1", 10256));
    let closed = 0;
    for (const client of clients) {
      client.on("error", () => {}).on("close", () => closed++);
      client.resume().write("GET /healthz HTTP/1.1\r\nX-Slow: ");
    }
    const drips = setInterval(() => {
      for (const client of clients) if (!client.destroyed) client.write("x");
    }, 1000);
    try {
      const dropped = async () =>
        sampleOf(await daemon.metrics(), 'turnout_server_connections_dropped_total{server="healthz"}');
      await eventually(async () => (await dropped()) >= 88, "the oldest displaced");
      expect(await daemon.health()).toMatchObject({ status: 200 });
      await eventually(() => closed === clients.length, "all of them closed");
      expect(rules()).toContain("172.30.0.10");
    } finally {
      clearInterval(drips);
      for (const client of clients) client.destroy();
    }
  });

  it.each([
    ["healthz", 10256],
    ["metrics", 10249],
  ])(
    "requests that are too large for the %s server: they are refused, and it answers on",
    async (_, port) => {
      const daemon = site.start();
      await daemon.ready();
      const responseTo = (request: string) =>
        new Promise<string>((resolve) => {
          const client = connectInside(site.netns, "127.0.0.1", port);
          let text = "";
          client.on("error", () => {}).on("close", () => resolve(text));
          client.setEncoding("utf8").on("data", (data: string) => {
            text += data;
          });
          client.write(request);
        });
      expect(await responseTo(`GET /${"x".repeat(20_000)} HTTP/1.1\r\nHost: node\r\n\r\n`)).toMatch(
        /^HTTP\/1\.1 431 /,
      );
      expect(
        await responseTo(`GET / HTTP/1.1\r\nHost: node\r\n${`X: ${"y".repeat(99)}\r\n`.repeat(500)}\r\n`),
      ).toMatch(/^HTTP\/1\.1 431 /);
      expect(await responseTo("\0\x01 nonsense\r\n\r\n")).toMatch(/^HTTP\/1\.1 400 /);
      expect(await responseTo("GET /healthz HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n")).toMatch(
        /^HTTP\/1\.1 200 /,
      );
      expect(daemon.running()).toBe(true);
    },
  );
});

/** Sends a batch of probes over one connection, and the next when all are answered; resolves with the number of good answers. */
function probe({ netns }: Site, path: string, rounds: number, batch: number): Promise<number> {
  const request = `GET ${path} HTTP/1.1\r\nHost: node\r\n\r\n`;
  const client = connectInside(netns, "127.0.0.1", 10256);
  let [answers, received] = [0, ""];
  client.setEncoding("utf8").on("data", (data: string) => {
    const parts = (received + data).split("HTTP/1.1 200 OK\r\n");
    received = parts.at(-1)!;
    answers += parts.length - 1;
    if (answers === rounds * batch) client.destroy();
    else if (parts.length > 1 && answers % batch === 0) client.write(request.repeat(batch));
  });
  client.write(request.repeat(batch));
  return new Promise((resolve) => {
    client.on("error", () => {}).on("close", () => resolve(answers));
  });
}

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
    await opened({ token: () => valid, tls: { key: serverKey, cert: serverCert } });
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
