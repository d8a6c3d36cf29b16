// The classes of flows: what belongs to each, what never does, and which entries may be deleted.
import { describe, expect, it } from "vitest";
import { endpoint, routed, servicePort } from "../../test/support/routed.ts";
import { trackedView } from "../../test/support/tracked-flows.ts";
import { type Flow, sctpStates, tcpStates } from "../model/flow.ts";
import { nftablesBehavior } from "../modes/nftables/behavior.ts";
import { attributor } from "./attribute.ts";
import { type Finding, findingOf, type KeptAlive, mayDelete } from "./classify.ts";
import { eligibilityReader } from "./eligibility.ts";
import { keptAliveByEntry, UnrepliedReadings } from "./kept-alive.ts";

const routes = {
  ...routed([
    servicePort("shop/web", {
      endpoints: [endpoint("10.180.0.1:8080"), endpoint("10.180.0.2:8080", { state: "draining" })],
    }),
    servicePort("kube-system/dns", {
      protocol: "udp",
      port: 53,
      clusterIP: "172.30.0.2",
      endpoints: [endpoint("10.180.0.3:53")],
    }),
  ]),
  serviceCIDRs: ["172.30.0.0/16"],
};
const attribute = attributor(routes, nftablesBehavior, { conntrack: "shared" });
const eligibilityOf = eligibilityReader(routes, nftablesBehavior);
const never: KeptAlive = () => null;

function found(text: string, more: Partial<Flow> = {}, keptAlive = never): Finding | null {
  const flow = trackedView(text, more);
  return findingOf(flow, attribute(flow), eligibilityOf, keptAlive);
}

const unreplied = { status: 0x8 };
const toDns = "udp 10.0.1.9:4000 > 172.30.0.2:53 > 10.180.0.3:53";

describe("a flow is", () => {
  it.each<[string, Partial<Flow>, string, string]>([
    [
      "udp 10.0.1.9:4000 > 172.30.0.2:53 > 10.180.0.9:53",
      {},
      "endpoint-gone",
      "10.180.0.9:53 is no longer an endpoint of kube-system/dns",
    ],
    [
      "tcp 10.0.1.9:4000 > 172.30.0.99:80 > 10.180.0.1:8080",
      {},
      "service-deleted",
      "172.30.0.99 is inside a ServiceCIDR, but belongs to no Service now",
    ],
    [
      "tcp 10.0.1.9:4000 > 172.30.0.10:80 > 10.180.0.2:8080",
      {},
      "not-eligible",
      "the endpoint is terminating, and others are ready",
    ],
    [
      "udp 10.0.1.9:4000 > 172.30.0.2:53",
      unreplied,
      "untranslated",
      "it started while kube-system/dns had no rules or no endpoint, so nothing translates it",
    ],
  ])("%s: %o: %s", (text, more, name, because) => {
    expect(found(text, more)).toMatchObject({ class: name, because });
  });

  it.each<[string, Partial<Flow>]>([
    ["tcp 10.0.1.9:4000 > 172.30.0.10:80 > 10.180.0.1:8080", {}],
    // Closed connections: the kernel keeps the entries for late packets.
    ["tcp 10.0.1.9:4000 > 172.30.0.10:80 > 10.180.0.9:8080", { state: "TIME_WAIT" }],
    ["tcp 10.0.1.9:4000 > 172.30.0.99:80 > 10.180.0.9:8080", { state: "CLOSE" }],
    // A program on the node answers at the Service's address, as node-local DNS caches do.
    ["udp 10.0.1.9:4000 > 172.30.0.2:53", {}],
    // A question that was sent a moment ago.
    [toDns, unreplied],
    // Other software.
    ["tcp 203.0.113.9:4000 > 192.168.0.2:8443 > 10.180.0.7:443", {}],
    ["udp 10.0.1.9:4000 > 8.8.8.8:53", unreplied],
  ])("no finding: %s %o", (text, more) => expect(found(text, more, never)).toBeNull());

  it("unreplied when it is older than its timeout, or the client sent often", () => {
    const now = 1_800_000_000_000;
    const old = { ...unreplied, startedAt: now - 46_800_000, timeout: 25 };
    expect(found(toDns, old, keptAliveByEntry(now))).toEqual({
      class: "unreplied",
      because: "no answer for 13h, and the client is still sending",
    });
    expect(found(toDns, { ...old, startedAt: now - 20_000 }, keptAliveByEntry(now))).toBeNull();
    const counters = (packets: number) => ({
      original: { packets, bytes: packets * 60 },
      reply: { packets: 0, bytes: 0 },
    });
    expect(found(toDns, { ...unreplied, counters: counters(900) }, keptAliveByEntry(now))).toEqual({
      class: "unreplied",
      because: "900 packets from the client, none from the endpoint",
    });
    expect(found(toDns, { ...unreplied, counters: counters(3) }, keptAliveByEntry(now))).toBeNull();
  });

  it("not unreplied by its age when the clock was set back", () => {
    const now = 1_800_000_000_000;
    expect(found(toDns, { ...unreplied, startedAt: now + 90_000_000 }, keptAliveByEntry(now))).toBeNull();
  });

  it("unreplied when its timeout was renewed between two readings", () => {
    const readings = new UnrepliedReadings();
    const at = (timeout: number, id = 7) => ({ ...unreplied, timeout, id });
    readings.note(trackedView(toDns, at(20)));
    readings.note(trackedView(toDns, at(20, 8)));
    const again = readings.keptAlive(5);
    expect(found(toDns, at(29), again)).toEqual({
      class: "unreplied",
      because: "the client sent again within 5 s, and nothing was answered",
    });
    expect(found(toDns, at(15, 8), again)).toBeNull();
    // Not in the first reading: it has just started.
    expect(found(toDns, at(29, 9), again)).toBeNull();
  });
});

it("only entries without an established connection may be deleted", () => {
  const states = new Set([...tcpStates, ...sctpStates]);
  const free = [...states].filter((state) =>
    mayDelete(trackedView("tcp 10.0.1.9:4000 > 172.30.0.10:80", { state })),
  );
  expect(free).toEqual(["NONE", "SYN_SENT", "TIME_WAIT", "CLOSE", "SYN_SENT2", "CLOSED", "COOKIE_WAIT"]);
  expect(mayDelete(trackedView(toDns))).toBe(true);
});
