// What is logged about a Source that has lost its connection.
import { expect, it } from "vitest";
import { logLines } from "../../test/support/log-lines.ts";
import { manualClock } from "../../test/support/manual-clock.ts";
import { initialStatus, type ResourceStatus } from "../sources/source.ts";
import { followSource } from "./source-log.ts";

const fine: ResourceStatus = { ...initialStatus, synced: true, watchSince: 1, heardAt: 1 };

it("logs a failure once, again when it changes or lasts, and its end", () => {
  const { set, lines, clock } = setUp();
  clock.advance(5000);
  expect(lines()).toEqual([]);
  set({ watchSince: null, failing: true, lastError: { message: "connection refused", at: 1 } });
  clock.advance(60_000);
  expect(lines()).toHaveLength(1);
  expect(lines()[0]).toMatch(
    /^E.*"Cannot watch the API server; retrying" err="connection refused" resource="Node"/,
  );
  set({ watchSince: null, failing: true, lastError: { message: "forbidden", at: 2 } });
  clock.advance(1000);
  expect(lines()).toHaveLength(2);
  clock.advance(600_000);
  expect(lines()).toHaveLength(3);
  set({ lastError: { message: "forbidden", at: 2 } });
  clock.advance(10_000);
  expect(lines()).toHaveLength(4);
  expect(lines()[3]).toMatch(/^I.*"API watch restored" resource="Node"/);
});

it("behaviour/2: an expected restart of a watch is a detail, whatever failed before", () => {
  const { set, lines, clock } = setUp({ verbosity: 2 });
  const lastRestart = { reason: "No bytes from the watch for 150 s", at: 1 };
  const lastError = { message: "connection refused", at: 1 };
  set({ watchSince: null, lastError, lastRestart });
  clock.advance(5000);
  expect(lines()).toHaveLength(1);
  expect(lines()[0]).toMatch(/^I.*"Restarted the watch" resource="Node" reason="No bytes from the watch/);
});

it("logs nothing about a watch that is reopened within a second, and nothing after the end", () => {
  const { set, lines, clock, end } = setUp();
  clock.advance(500);
  set({ watchSince: null, failing: true, lastError: { message: "connection reset", at: 1 } });
  clock.advance(400);
  set({ watchSince: 2, lastError: { message: "connection reset", at: 1 } });
  clock.advance(5000);
  end();
  set({ watchSince: null, failing: true, lastError: { message: "connection reset", at: 3 } });
  clock.advance(5000);
  expect(lines()).toEqual([]);
});

function setUp(settings: { verbosity?: number } = {}) {
  const clock = manualClock();
  const { log, lines } = logLines(clock, settings);
  const stop = new AbortController();
  let status = fine;
  followSource({ status: () => ({ synced: true, resources: { Node: status } }) }, clock, log, stop.signal);
  const set = (change: Partial<ResourceStatus>) => {
    status = { ...fine, ...change };
  };
  return { clock, lines, set, end: () => stop.abort() };
}
