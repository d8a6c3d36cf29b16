// The health rule: upstream's, and what the honest answers add.
import { describe, expect, it } from "vitest";
import { type ManualClock, manualClock } from "../../test/support/manual-clock.ts";
import { momentOf, timeText } from "./clock.ts";
import type { HealthSettings } from "./health.ts";
import { healthzAnswer, livezAnswer } from "./health-answers.ts";
import { openHealth, type ProxyHealth } from "./proxy-health.ts";

const base: HealthSettings = { timeoutMs: () => 10_000, answers: "honest", silentMs: 900_000 };

function setUp(settings: Partial<HealthSettings> = {}) {
  const clock = manualClock();
  const health = openHealth({ ...base, ...settings }, clock);
  health.setNode({ eligibleForLoadBalancers: true });
  return { clock, health, ...asked(health, clock) };
}

function asked(health: ProxyHealth, clock: ManualClock) {
  const parsed = (answer: { status: number; body: string }) => ({
    code: answer.status,
    ...JSON.parse(answer.body),
  });
  return {
    healthz: () => parsed(healthzAnswer(health.verdict(), momentOf(clock), health.nodeEligible())),
    livez: () => parsed(livezAnswer(health.verdict(), momentOf(clock))),
    now: () => timeText(clock.wall()),
  };
}

function synced(health: ProxyHealth, ...families: ("ipv4" | "ipv6")[]): void {
  for (const family of families) health.report({ kind: "synced", family, refused: [] });
}

describe.each(["honest", "upstream"] as const)("the rule of kube-proxy, answering %s", (answers) => {
  it("03/1 a fresh server on an eligible node is healthy and lists no family", () => {
    const { healthz, now } = setUp({ answers });
    expect(healthz()).toEqual({
      code: 200,
      lastUpdated: now(),
      currentTime: now(),
      nodeEligible: true,
      healthy: true,
    });
  });

  it("03/2 families updated long ago with nothing queued are healthy, and show their real times", () => {
    const { clock, health, healthz, now } = setUp({ answers });
    synced(health, "ipv4", "ipv6");
    const old = now();
    clock.advance(25_000);
    expect(healthz()).toEqual({
      code: 200,
      lastUpdated: now(),
      currentTime: now(),
      nodeEligible: true,
      healthy: true,
      status: { IPv4: { lastUpdated: old, healthy: true }, IPv6: { lastUpdated: old, healthy: true } },
    });
  });

  it("03/3 a change queued for longer than the timeout makes its family unhealthy, not the other", () => {
    const { clock, health, healthz, now } = setUp({ answers });
    synced(health, "ipv4", "ipv6");
    health.report({ kind: "queued", family: "ipv4" });
    clock.advance(5_000);
    synced(health, "ipv6");
    const newest = now();
    clock.advance(20_000);
    expect(healthz()).toMatchObject({
      code: 503,
      lastUpdated: newest,
      healthy: false,
      status: { IPv4: { healthy: false }, IPv6: { healthy: true } },
    });
  });

  it("03/4 only the late family's own update heals", () => {
    const { clock, health, healthz } = setUp({ answers });
    synced(health, "ipv4", "ipv6");
    health.report({ kind: "queued", family: "ipv6" });
    clock.advance(25_000);
    synced(health, "ipv4");
    expect(healthz().code).toBe(503);
    synced(health, "ipv6");
    expect(healthz().code).toBe(200);
  });

  it("03/5 the oldest queued change counts, and exactly the timeout is too late", () => {
    const { clock, health, healthz } = setUp({ answers });
    synced(health, "ipv4");
    health.report({ kind: "queued", family: "ipv4" });
    clock.advance(9_000);
    health.report({ kind: "queued", family: "ipv4" });
    clock.advance(999);
    expect(healthz().code).toBe(200);
    clock.advance(1);
    expect(healthz().code).toBe(503);
  });

  it("03/6 a success clears what was queued", () => {
    const { clock, health, healthz } = setUp({ answers });
    health.report({ kind: "queued", family: "ipv4" });
    clock.advance(5_000);
    synced(health, "ipv4");
    clock.advance(95_000);
    expect(healthz().code).toBe(200);
  });

  it("03/7 a family that only ever queued is not listed and does not count", () => {
    const { clock, health, healthz } = setUp({ answers });
    health.report({ kind: "queued", family: "ipv4" });
    clock.advance(100_000);
    const { code, status } = healthz();
    expect([code, status]).toEqual([200, undefined]);
  });

  it("starting the sync loop lists the family and drops what was queued before", () => {
    const { clock, health, healthz } = setUp({ answers });
    health.report({ kind: "queued", family: "ipv4" });
    clock.advance(9_000);
    health.report({ kind: "started", family: "ipv4" });
    clock.advance(9_000);
    expect(healthz()).toMatchObject({ code: 200, status: { IPv4: { healthy: true } } });
  });

  it("03/8 an ineligible node fails /healthz while the proxy stays healthy; /livez ignores it", () => {
    const { health, healthz, livez } = setUp({ answers });
    synced(health, "ipv4");
    health.setNode({ eligibleForLoadBalancers: false });
    expect(healthz()).toMatchObject({ code: 503, healthy: true, nodeEligible: false });
    expect(livez()).toMatchObject({ code: 200, healthy: true });
    expect(livez()).not.toHaveProperty("nodeEligible");
  });

  it("03/10 without a Node object /healthz fails and /livez does not", () => {
    const { health, healthz, livez } = setUp({ answers });
    health.setNode(null);
    expect([healthz().code, livez().code]).toEqual([503, 200]);
  });

  it("03/13 before any update a 503 shows the zero time", () => {
    const { health, healthz } = setUp({ answers });
    health.setNode(null);
    expect(healthz().lastUpdated).toBe("0001-01-01T00:00:00Z");
  });

  it("a clock that is set forward or back changes nothing", () => {
    const { clock, health, healthz } = setUp({ answers });
    synced(health, "ipv4");
    health.report({ kind: "queued", family: "ipv4" });
    clock.jump(3_600_000);
    expect(healthz().code).toBe(200);
    clock.jump(-7_200_000);
    clock.advance(10_000);
    expect(healthz().code).toBe(503);
  });
});

describe("the honest answers", () => {
  it("the keys and their order are upstream's; reasons come last and only when there are any", () => {
    const { clock, health } = setUp();
    synced(health, "ipv4");
    const before = healthzAnswer(health.verdict(), momentOf(clock), true).body;
    expect(Object.keys(JSON.parse(before))).toEqual([
      "lastUpdated",
      "currentTime",
      "nodeEligible",
      "healthy",
      "status",
    ]);
    health.report({ kind: "queued", family: "ipv4" });
    clock.advance(10_000);
    const after = healthzAnswer(health.verdict(), momentOf(clock), true).body;
    expect(Object.keys(JSON.parse(after)).at(-1)).toBe("reasons");
    expect(after).not.toMatch(/\s$/);
  });

  it("reports when every Sync fails, although nothing is queued", () => {
    const { clock, health, healthz, livez, now } = setUp();
    synced(health, "ipv4");
    const since = now();
    health.report({ kind: "failed", family: "ipv4", message: "nft exited with 1" });
    clock.advance(9_999);
    health.report({ kind: "failed", family: "ipv4", message: "Permission denied" });
    expect(healthz().code).toBe(200);
    clock.advance(1);
    expect(healthz()).toMatchObject({
      code: 503,
      healthy: false,
      reasons: [{ kind: "failing", family: "IPv4", since, message: "every Sync fails: Permission denied" }],
    });
    expect(livez().code).toBe(503);
    synced(health, "ipv4");
    expect(healthz()).toMatchObject({ code: 200 });
  });

  it("reports when the kernel is known to differ", () => {
    const { clock, health, healthz } = setUp();
    synced(health, "ipv6");
    health.report({ kind: "differs", family: "ipv6", message: "3 elements are missing" });
    clock.advance(10_000);
    expect(healthz()).toMatchObject({
      code: 503,
      reasons: [{ kind: "differs", message: "3 elements are missing" }],
    });
  });

  it("security/4: reports a foreign change from the moment it is known until the host was compared", () => {
    const { health, healthz } = setUp();
    synced(health, "ipv4");
    health.report({ kind: "drifted", family: "ipv4", message: "KUBE-FIREWALL was flushed" });
    synced(health, "ipv4");
    expect(healthz()).toMatchObject({
      code: 200,
      reasons: [{ kind: "drifted", message: "not yet repaired: KUBE-FIREWALL was flushed" }],
    });
    health.report({ kind: "compared", family: "ipv4" });
    expect(healthz()).not.toHaveProperty("reasons");
  });

  it("reports when nothing was ever synced; a restart would not help, so /livez passes", () => {
    const { clock, health, healthz, livez } = setUp();
    health.report({ kind: "started", family: "ipv4" });
    clock.advance(10_000);
    expect(healthz()).toMatchObject({
      code: 503,
      reasons: [{ kind: "never-synced" }],
      status: { IPv4: { healthy: false } },
    });
    expect(livez()).toMatchObject({ code: 200, healthy: true, status: { IPv4: { healthy: true } } });
  });

  it("reports refused objects and silent watches without failing", () => {
    const { clock, health, healthz } = setUp();
    health.setWatchAges(
      () =>
        new Map([
          ["services", 900_000],
          ["nodes", 899_999],
        ]),
    );
    clock.advance(900_000);
    health.report({ kind: "synced", family: "ipv4", refused: ["Service a/b: no", "Service c/d: no"] });
    expect(healthz()).toMatchObject({
      code: 200,
      healthy: true,
      reasons: [
        { kind: "refused", family: "IPv4", message: "Service a/b: no (and 1 more)" },
        { kind: "silent-watch", message: "the API server sends nothing about services" },
      ],
    });
    expect(healthz().reasons[1].since).toBe("2026-01-02T03:04:05Z");
  });

  it("long messages are cut", () => {
    const { clock, health, healthz } = setUp();
    synced(health, "ipv4");
    health.report({ kind: "differs", family: "ipv4", message: "x".repeat(5000) });
    clock.advance(10_000);
    expect(healthz().reasons[0].message).toHaveLength(301);
  });

  it("answering as upstream, none of this is shown or counts", () => {
    const { clock, health, healthz } = setUp({ answers: "upstream" });
    health.report({ kind: "started", family: "ipv4" });
    health.setWatchAges(() => new Map([["services", 900_000]]));
    health.report({ kind: "failed", family: "ipv4", message: "no" });
    health.report({ kind: "differs", family: "ipv4", message: "no" });
    clock.advance(900_000);
    expect(healthz()).toMatchObject({ code: 200, healthy: true });
    expect(healthz()).not.toHaveProperty("reasons");
    health.report({ kind: "queued", family: "ipv4" });
    clock.advance(900_000);
    expect(healthz().code).toBe(503);
    expect(healthz()).not.toHaveProperty("reasons");
  });
});
