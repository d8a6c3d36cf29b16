// The canary distinguishes a flush from a held lock, and waits for the other tables.
import { describe, expect, it } from "vitest";
import { manualClock } from "../../../test/support/manual-clock.ts";
import { loopbackGuards } from "../../modes/iptables/foundation.ts";
import type { PlacedRule } from "../../plan/iptables/types.ts";
import { watchCanary } from "./canary.ts";
import type { Start } from "./command.ts";

/** A host whose canaries answer with these exit statuses. */
function watching(isSet = true) {
  let periodMs = 30_000;
  let guards: readonly PlacedRule[] = [];
  const clock = manualClock();
  const codes: Record<string, number> = { mangle: 0, nat: 0, filter: 0 };
  const commands: string[] = [];
  const alarms: string[] = [];
  const start: Start = (program, args) => {
    commands.push([program, ...args].join(" "));
    return { pid: 1, finished: Promise.resolve({ code: codes[args.at(-1)!]!, stdout: "", stderr: "" }) };
  };
  const stop = new AbortController();
  const done = watchCanary(
    {
      family: "ipv4",
      chain: "KUBE-PROXY-CANARY",
      start,
      clock,
      periodMs: () => periodMs,
      isSet: () => isSet,
      guards: () => guards,
      onGone: (what) => alarms.push(what),
    },
    stop.signal,
  );
  const pass = async (ms: number) => {
    clock.advance(ms);
    for (let i = 0; i < 20; i++) await Promise.resolve();
  };
  const every = (ms: number) => {
    periodMs = ms;
  };
  const guard = () => {
    guards = loopbackGuards;
  };
  return { codes, commands, alarms, pass, every, stop, done, guard };
}

describe("the canary", () => {
  it("10/51 is checked in mangle, once a period", async () => {
    const { commands, alarms, pass } = watching();
    await pass(29_999);
    expect(commands).toEqual([]);
    await pass(1);
    expect(commands).toEqual(["iptables -w 5 -S KUBE-PROXY-CANARY -t mangle"]);
    await pass(30_000);
    expect(commands).toHaveLength(2);
    expect(alarms).toEqual([]);
  });

  it("is checked at the new interval when the period changes", async () => {
    const { commands, pass, every } = watching();
    every(3_600_000);
    await pass(60_000);
    expect(commands).toEqual([]);
    every(5_000);
    await pass(10_000);
    expect(commands).toHaveLength(1);
    await pass(5_000);
    expect(commands).toHaveLength(2);
  });

  it("10/51 reports once that it is gone, after the other tables are flushed too", async () => {
    const { codes, alarms, pass } = watching();
    Object.assign(codes, { mangle: 1, nat: 1 });
    await pass(30_000);
    await pass(100);
    expect(alarms).toEqual([]);
    codes.filter = 1;
    await pass(100);
    expect(alarms).toEqual(["all tables were flushed"]);
    Object.assign(codes, { mangle: 0, nat: 0, filter: 0 });
    await pass(60_000);
    expect(alarms).toHaveLength(1);
  });

  it("waits at most five seconds for them", async () => {
    const { codes, alarms, pass } = watching();
    codes.mangle = 1;
    await pass(30_000);
    for (let i = 0; i < 51; i++) await pass(100);
    expect(alarms).toEqual(["table mangle was flushed, others were not"]);
  });

  it.each([4, 2, 111])("10/52 exit status %i means nothing", async (code) => {
    const { codes, alarms, pass } = watching();
    codes.mangle = code;
    for (let i = 0; i < 60; i++) await pass(1_000);
    expect(alarms).toEqual([]);
  });

  it("is not missed before it was ever written", async () => {
    const { codes, commands, pass } = watching(false);
    codes.mangle = 1;
    await pass(60_000);
    expect(commands).toEqual([]);
  });

  it("security/4: a guard that is gone is reported every period, as long as the canary is there", async () => {
    const { commands, alarms, pass, guard } = watching();
    guard();
    await pass(30_000);
    expect(commands).toEqual([
      "iptables -w 5 -S KUBE-PROXY-CANARY -t mangle",
      "iptables -w 5 -S INPUT -t filter",
    ]);
    expect(alarms).toEqual(["chain INPUT lost the rule that keeps neighbours from loopback addresses"]);
    await pass(30_000);
    expect(alarms).toHaveLength(2);
  });

  it("security/4: tables that cannot be listed do not count as a guard that is gone", async () => {
    const { codes, alarms, pass, guard } = watching();
    guard();
    codes.filter = 4;
    await pass(30_000);
    expect(alarms).toEqual([]);
  });

  it("ends with the signal", async () => {
    const { stop, done } = watching();
    stop.abort();
    await expect(done).resolves.toBeUndefined();
  });
});
