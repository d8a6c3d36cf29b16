// The small parts of the API client: lines, back-off, rate limit, failures, versions.
import { setMaxListeners } from "node:events";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { manualClock } from "../../../test/support/manual-clock.ts";
import { Backoff } from "./backoff.ts";
import { failureOf } from "./failure.ts";
import { lineSplitter } from "./lines.ts";
import { isOlder, watchedResources } from "./resources.ts";
import { throttle } from "./throttle.ts";

describe("lines", () => {
  it("22/6 are the same however the bytes are cut", () => {
    const line = fc.string({ unit: "binary" }).map((text) => text.replaceAll("\n", "\u2028"));
    fc.assert(
      fc.property(fc.array(line), fc.array(fc.nat({ max: 7 })), (lines, cuts) => {
        const bytes = Buffer.from(lines.map((each) => `${each}\n`).join(""));
        const split = lineSplitter(1 << 20);
        const found: string[] = [];
        for (let at = 0, i = 0; at < bytes.length; i++) {
          const size = 1 + (cuts[i % Math.max(1, cuts.length)] ?? 3);
          found.push(...split(bytes.subarray(at, at + size)).map((each) => each.toString()));
          at += size;
        }
        expect(found).toEqual(lines.map((each) => Buffer.from(each).toString()));
      }),
    );
  });

  it("are bounded", () => {
    const split = lineSplitter(10);
    expect(split(Buffer.from("123456789"))).toEqual([]);
    expect(() => split(Buffer.from("10"))).toThrow("longer than 10 bytes");
  });
});

describe("back-off", () => {
  it("doubles from 0.8 s to 30 s, jitters up to twice that, and resets after two quiet minutes", () => {
    const clock = manualClock();
    let chance = 0;
    const backoff = new Backoff({ clock, random: () => chance });
    expect([1, 2, 3, 4, 5, 6, 7, 8].map(() => backoff.next())).toEqual([
      800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000,
    ]);
    chance = 0.5;
    expect(backoff.next()).toBe(45_000);
    clock.advance(120_000);
    expect(backoff.next()).toBe(45_000);
    clock.advance(120_001);
    expect(backoff.next()).toBe(1200);
  });

  it("resets after a watch that lasted ten seconds and longer than the last pause", () => {
    const backoff = new Backoff({ clock: manualClock(), random: () => 0 });
    expect([backoff.next(), backoff.next()]).toEqual([800, 1600]);
    backoff.held(9_999);
    expect(backoff.next()).toBe(3200);
    backoff.held(10_000);
    expect(backoff.next()).toBe(800);
    expect([1, 2, 3, 4, 5].map(() => backoff.next())).toEqual([1600, 3200, 6400, 12_800, 25_600]);
    backoff.held(25_599);
    expect(backoff.next()).toBe(30_000);
    backoff.held(30_000);
    expect(backoff.next()).toBe(800);
  });
});

describe("rate limit", () => {
  const { signal } = new AbortController();
  setMaxListeners(0, signal);

  /** How many of these requests are sent after each second. */
  async function allowed(limit: { qps: number; burst: number }, requests: number, seconds: number) {
    const clock = manualClock();
    const take = throttle(limit, clock);
    let gone = 0;
    for (let i = 0; i < requests; i++) void take(signal).then(() => gone++);
    const counts: number[] = [];
    for (let i = 0; i <= seconds; i++) {
      await new Promise((resolve) => setImmediate(resolve));
      counts.push(gone);
      clock.advance(1000);
    }
    return counts;
  }

  it("lets a burst through, then a steady rate", async () => {
    expect(await allowed({ qps: 5, burst: 10 }, 30, 3)).toEqual([10, 15, 20, 25]);
    expect(await allowed({ qps: 0, burst: 0 }, 30, 1)).toEqual([10, 15]);
    expect(await allowed({ qps: -1, burst: 0 }, 30, 0)).toEqual([30]);
    expect(() => throttle({ qps: 5, burst: 0 }, manualClock())).toThrow("burst is 0");
  });
});

describe("failures", () => {
  const status = (part: object) => ({ kind: "Status", ...part });

  it("are classified by how to recover", () => {
    expect(failureOf(410, "<html>").kind).toBe("expired");
    expect(failureOf(200, status({ code: 410, reason: "Gone" })).kind).toBe("expired");
    expect(
      failureOf(504, status({ details: { causes: [{ reason: "ResourceVersionTooLarge" }] } })).kind,
    ).toBe("ahead");
    expect(failureOf(504, status({ message: "Too large resource version: 5" })).kind).toBe("ahead");
    expect(failureOf(429, null)).toMatchObject({ kind: "throttled", waitMs: 0 });
    expect(failureOf(503, null, "7")).toMatchObject({ kind: "throttled", waitMs: 7000 });
    expect(failureOf(429, null, "999999").waitMs).toBe(600_000);
    const at = Date.UTC(2026, 0, 1);
    expect(failureOf(429, null, new Date(at + 4000).toUTCString(), at).waitMs).toBe(4000);
    expect(failureOf(429, status({ details: { retryAfterSeconds: 2 } })).waitMs).toBe(2000);
    expect(failureOf(500, null)).toMatchObject({ kind: "refused", message: "HTTP 500", code: 500 });
  });
});

it("versions are compared as numbers of any length, and only if they are numbers", () => {
  expect(isOlder("9", "10")).toBe(true);
  expect(isOlder("10", "9")).toBe(false);
  expect(isOlder("10", "10")).toBe(false);
  expect(isOlder("18446744073709551615", "18446744073709551616")).toBe(true);
  expect(isOlder("abc", "abd")).toBe(false);
});

it("a node name is escaped where it would break the selector", () => {
  expect(watchedResources("a,b=c").Node.selectors.fieldSelector).toBe("metadata.name=a\\,b\\=c");
});
