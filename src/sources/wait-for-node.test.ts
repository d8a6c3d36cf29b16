// Start-up's wait for this Node, on a clock that the test moves.
import { beforeEach, expect, it } from "vitest";
import { type ManualClock, manualClock } from "../../test/support/manual-clock.ts";
import type { ClusterNode } from "../model/snapshot.ts";
import { NodeLog } from "./node-log.ts";
import { type FoundNode, waitForNode } from "./wait-for-node.ts";

let clock: ManualClock;
let nodes: NodeLog;
let found: FoundNode | null;
let life: AbortController;
let waits: (string | number | null)[][];

beforeEach(() => {
  clock = manualClock();
  nodes = new NodeLog();
  found = null;
  life = new AbortController();
  waits = [];
});

const node = (part: Partial<ClusterNode> = {}): ClusterNode => ({
  name: "node-1",
  zone: "",
  addresses: ["192.168.0.1"],
  podCIDRs: [],
  eligibleForLoadBalancers: true,
  ...part,
});

function start(podCIDRs = false): Promise<unknown> {
  const source = { nodeEvents: (signal: AbortSignal) => nodes.events(signal) };
  const report = (...wait: (string | number | null)[]) => waits.push(wait);
  return waitForNode(source, { podCIDRs }, clock, life.signal, report).then((answer) => {
    found = answer;
  });
}

const settle = () => new Promise((resolve) => setImmediate(resolve));

async function pass(ms: number) {
  await settle();
  clock.advance(ms);
  await settle();
}

it("02/1 waits without limit until the cluster responds", async () => {
  const waiting = start();
  await pass(24 * 3600_000);
  expect(found).toBeNull();
  nodes.see(node(), "1");
  await waiting;
  expect(found).toEqual({ node: node(), missing: "nothing" });
  expect(clock.pending()).toBe(0);
});

it("02/2 continues with the address of a Node that appears after 10 s", async () => {
  const waiting = start();
  nodes.see(null, "");
  await pass(10_000);
  expect(found).toBeNull();
  nodes.see(node(), "1");
  await waiting;
  expect(found).toEqual({ node: node(), missing: "nothing" });
});

it("02/3 continues after 30 s when there is no Node", async () => {
  const waiting = start();
  nodes.see(null, "");
  await pass(29_999);
  expect(found).toBeNull();
  await pass(1);
  await waiting;
  expect(found).toEqual({ node: null, missing: "node" });
});

it("02/4 waits five more minutes for podCIDRs where they are needed, and reports that they are missing", async () => {
  const waiting = start(true);
  nodes.see(node(), "1");
  await pass(299_999);
  expect(found).toBeNull();
  await pass(1);
  await waiting;
  expect(found!.missing).toBe("podCIDRs");
});

it("02/4 accepts podCIDRs without addresses", async () => {
  const waiting = start(true);
  const bare = node({ addresses: [], podCIDRs: ["10.0.0.0/24"] });
  nodes.see(bare, "1");
  await pass(30_000);
  await waiting;
  expect(found).toEqual({ node: bare, missing: "addresses" });
});

it("reports what it waits for, and the time limit", async () => {
  const waiting = start(true);
  await settle();
  expect(waits).toEqual([["node", null]]);
  nodes.see(null, "");
  await settle();
  expect(waits.slice(1)).toEqual([["addresses", 30_000]]);
  nodes.see(node(), "1");
  await settle();
  expect(waits.slice(2)).toEqual([["podCIDRs", 300_000]]);
  nodes.see(node({ podCIDRs: ["10.0.0.0/24"] }), "1");
  await waiting;
  expect(waits).toHaveLength(3);
});

it("stops waiting when aborted", async () => {
  const waiting = start();
  await settle();
  life.abort();
  await expect(waiting).rejects.toThrow("aborted");
});
