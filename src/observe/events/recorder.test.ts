// Events as the API server sees them: form, series, pacing, retries, and what happens when it is not there.
import { describe, expect, it } from "vitest";
import { manualClock } from "../../../test/support/manual-clock.ts";
import { silentLog } from "../log/log.ts";
import type { EventRequest, Regarding } from "./event.ts";
import { type DropReason, openEvents } from "./recorder.ts";

const node: Regarding = { kind: "Node", name: "node-a" };
const service = (name: string): Regarding => ({ kind: "Service", namespace: "shop", name });

type Answer = number | "no answer";

function setUp(
  answer: (request: EventRequest, nth: number) => Answer = (request) =>
    request.method === "POST" ? 201 : 200,
) {
  const clock = manualClock();
  const sent: (EventRequest & { at: number })[] = [];
  const dropped: DropReason[] = [];
  const events = openEvents("host-1", {
    clock,
    random: () => 0,
    log: silentLog,
    onDropped: (why) => dropped.push(why),
  });
  const start = clock.steady();
  const send = async (request: EventRequest): Promise<number> => {
    sent.push({ ...request, at: clock.steady() - start });
    const given = answer(request, sent.length);
    if (given === "no answer") throw new Error("connection refused");
    return given;
  };
  const settle = async (ms = 0) => {
    for (let left = ms; ; left -= 1000) {
      for (let i = 0; i < 30; i++) await Promise.resolve();
      if (left <= 0) return;
      clock.advance(Math.min(1000, left));
    }
  };
  return { clock, sent, dropped, events, send, settle };
}

const parsed = (request: EventRequest | undefined) => JSON.parse(request!.body);

describe("an Event", () => {
  it("about the Node is stored in namespace default, without UID", async () => {
    const { events, send, sent, settle } = setUp();
    events.connect(send);
    events.record("Starting", node, "");
    await settle();
    expect(sent[0]).toMatchObject({
      method: "POST",
      path: "/apis/events.k8s.io/v1/namespaces/default/events",
    });
    expect(parsed(sent[0])).toEqual({
      apiVersion: "events.k8s.io/v1",
      kind: "Event",
      metadata: { name: expect.stringMatching(/^node-a\.[0-9a-f]{16}$/), namespace: "default" },
      eventTime: "2026-01-02T03:04:05.000000Z",
      reportingController: "kube-proxy",
      reportingInstance: "kube-proxy-host-1",
      action: "StartKubeProxy",
      reason: "Starting",
      regarding: { apiVersion: "v1", kind: "Node", name: "node-a" },
      note: "",
      type: "Normal",
    });
  });

  it("about a Service is stored beside it; a long note is cut to the limit of the API", async () => {
    const { events, send, sent, settle } = setUp();
    events.connect(send);
    events.record("FailedToStartServiceHealthcheck", service("web"), "é".repeat(2000));
    await settle();
    expect(sent[0]!.path).toBe("/apis/events.k8s.io/v1/namespaces/shop/events");
    const { regarding, type, action, note } = parsed(sent[0]);
    expect([regarding.namespace, type, action]).toEqual(["shop", "Warning", "Listen"]);
    expect(note).toBe("é".repeat(512));
  });

  it("two of the same moment have different names, and long object names leave room", async () => {
    const { events, send, sent, settle } = setUp();
    events.connect(send);
    events.record("Starting", node, "");
    events.record("KubeProxyDefaultMode", node, "");
    events.record("FailedToStartServiceHealthcheck", service(`a${"-b".repeat(200)}`), "");
    await settle();
    const names = sent.map((request) => parsed(request).metadata.name);
    expect(new Set(names).size).toBe(3);
    expect(names[2].length).toBeLessThanOrEqual(253);
    expect(names[2]).toMatch(/[a-z0-9]\.[0-9a-f]{16}$/);
  });

  it("02/37 recorded before the API is connected is not lost", async () => {
    const { events, send, sent, settle } = setUp();
    events.record("KubeProxyDefaultMode", node, "the default changes");
    await settle();
    expect(sent).toEqual([]);
    events.connect(send);
    await settle();
    expect(parsed(sent[0]).reason).toBe("KubeProxyDefaultMode");
  });
});

it("the latest Events are listed with what became of them", async () => {
  const { events, send, settle } = setUp((request) => (request.body.includes("refuse me") ? 403 : 201));
  events.record("Starting", node, "");
  expect(events.recent()).toMatchObject([{ reason: "Starting", type: "Normal", delivery: "waiting" }]);
  events.connect(send);
  events.record("FailedToStartServiceHealthcheck", service("web"), "refuse me");
  await settle();
  expect(events.recent()).toMatchObject([
    { reason: "FailedToStartServiceHealthcheck", type: "Warning", note: "refuse me", delivery: "given up" },
    { reason: "Starting", delivery: "sent", count: 1 },
  ]);
  events.record("Starting", node, "");
  await settle();
  expect(events.recent()[1]).toMatchObject({ reason: "Starting", count: 2 });
  for (let i = 0; i < 30; i++) events.record("FailedToStartServiceHealthcheck", service(`s${i}`), "");
  expect(events.recent()).toHaveLength(20);
  expect(events.recent()[0]!.regarding.name).toBe("s29");
});

describe("a series", () => {
  it("begins with the second occurrence, is counted after that, and ends with the final count", async () => {
    const { events, send, sent, settle } = setUp();
    events.connect(send);
    for (let i = 0; i < 5; i++) {
      events.record("FailedToStartServiceHealthcheck", service("web"), "in use");
      await settle(1000);
    }
    expect(sent.map((request) => request.method)).toEqual(["POST", "PATCH"]);
    expect(sent[1]!.path).toBe(
      `/apis/events.k8s.io/v1/namespaces/shop/events/${parsed(sent[0]).metadata.name}`,
    );
    expect(sent[1]!.contentType).toBe("application/strategic-merge-patch+json");
    expect(parsed(sent[1])).toEqual({
      series: { count: 2, lastObservedTime: "2026-01-02T03:04:06.000000Z" },
    });
    await settle(12 * 60_000);
    expect(sent.map((request) => parsed(request).series?.count)).toEqual([undefined, 2, 5]);
    events.record("FailedToStartServiceHealthcheck", service("web"), "in use");
    await settle();
    expect(sent.at(-1)!.method).toBe("POST");
  });

  it("of different objects are different series", async () => {
    const { events, send, sent, settle } = setUp();
    events.connect(send);
    for (const name of ["a", "b"]) events.record("FailedToStartServiceHealthcheck", service(name), "");
    await settle();
    expect(sent.map((request) => request.method)).toEqual(["POST", "POST"]);
  });

  it("that continues is sent again every half hour", async () => {
    const { events, send, sent, settle } = setUp();
    events.connect(send);
    for (let minute = 0; minute < 70; minute++) {
      events.record("FailedToStartServiceHealthcheck", service("web"), "in use");
      await settle(60_000);
    }
    expect(sent.filter((request) => request.method === "PATCH").length).toBe(3);
  });

  it("whose Event is gone is created again, with its count", async () => {
    const { events, send, sent, settle } = setUp((request) => (request.method === "PATCH" ? 404 : 201));
    events.connect(send);
    events.record("Starting", node, "");
    await settle();
    events.record("Starting", node, "");
    await settle();
    expect(sent.map((request) => request.method)).toEqual(["POST", "PATCH", "POST"]);
    expect(parsed(sent[2]).series.count).toBe(2);
  });
});

describe("trouble", () => {
  it("without an answer an Event is tried twelve times, ten seconds apart, then given up", async () => {
    const { events, send, sent, dropped, settle } = setUp(() => "no answer");
    events.connect(send);
    events.record("Starting", node, "");
    await settle(200_000);
    expect(sent.map((request) => request.at)).toEqual(Array.from({ length: 12 }, (_, i) => i * 10_000));
    expect(dropped).toEqual(["retries"]);
  });

  it("requests are retried when the API server is overloaded, not when it refuses", async () => {
    const busy = setUp((_, nth) => (nth === 1 ? 429 : 201));
    busy.events.connect(busy.send);
    busy.events.record("Starting", node, "");
    await busy.settle(10_000);
    expect([busy.sent.length, busy.dropped]).toEqual([2, []]);
    const strict = setUp(() => 403);
    strict.events.connect(strict.send);
    strict.events.record("Starting", node, "");
    await strict.settle(20_000);
    expect([strict.sent.length, strict.dropped]).toEqual([1, ["rejected"]]);
  });

  it("a burst is sent immediately, the rest one each second; what does not fit is dropped and counted", async () => {
    const { events, send, sent, dropped, settle } = setUp();
    for (let i = 0; i < 1200; i++) events.record("FailedToStartServiceHealthcheck", service(`s${i}`), "");
    expect(dropped).toEqual(Array(200).fill("queue-full"));
    events.connect(send);
    await settle();
    for (let i = 0; i < 10; i++) await settle();
    expect(sent.length).toBe(25);
    await settle(5000);
    expect(sent.length).toBe(30);
  });

  it("drain waits for the last Events, up to a limit", async () => {
    const quick = setUp();
    quick.events.connect(quick.send);
    quick.events.record("FailedToStartMetricServer", node, "in use");
    await quick.events.drain(1000);
    expect(quick.sent).toHaveLength(1);
    await quick.events.drain(1000);
    const slow = setUp();
    slow.events.connect(() => new Promise(() => {}));
    slow.events.record("FailedToStartMetricServer", node, "in use");
    let done = false;
    const drained = slow.events.drain(1000).then(() => {
      done = true;
    });
    await slow.settle();
    expect(done).toBe(false);
    slow.clock.advance(1000);
    await drained;
  });

  it("after closing nothing is sent and no timer is left", async () => {
    const { events, send, sent, clock, settle } = setUp(() => "no answer");
    events.connect(send);
    events.record("Starting", node, "");
    await settle();
    events.close();
    await settle(60_000);
    expect([sent.length, clock.pending()]).toEqual([1, 0]);
  });
});
