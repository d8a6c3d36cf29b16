// The API source against a real server on loopback: every fault, and the final Snapshot equals the server's state.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, expect, it, vi } from "vitest";
import { type ApiRig, apiRig, node, service, serviceCIDR, slice } from "../../../test/support/api-rig.ts";
import { type ManualClock, manualClock } from "../../../test/support/manual-clock.ts";
import type { ApiServer, Seen } from "../../playground/api/server.ts";

const patiently = { timeout: 10_000, interval: 5 };

let rig: ApiRig;
let clock: ManualClock;
let failuresBefore = 0;

afterEach(() => rig?.stop());

type RigOptions = Parameters<typeof apiRig>[1];

/** A rig in sync with a small cluster. */
async function synced(options: RigOptions & { streaming?: boolean } = {}) {
  await started({
    ...options,
    prepare(server) {
      server.faults.refuseStreamingLists = options.streaming === false;
      server.put(node());
      server.put(service("web"));
      server.put(slice("web-1", "web", ["10.0.0.1"]));
      server.put(serviceCIDR("kubernetes", "172.30.0.0/16"));
    },
  });
  await agrees();
  await watching();
  failuresBefore = status().failures;
}

async function started(options: RigOptions = {}) {
  clock = manualClock();
  failuresBefore = 0;
  rig = await apiRig(clock, { random: () => 0.5, ...options });
}

const agrees = () => vi.waitFor(() => expect(rig.seen()).toEqual(rig.truth()), patiently);
/** The same, while time goes by. */
const catchesUp = () =>
  vi.waitFor(() => {
    clock.advance(1000);
    expect(rig.seen()).toEqual(rig.truth());
  }, patiently);
const watching = (count = 4) => vi.waitFor(() => expect(rig.server.watches()).toHaveLength(count), patiently);
const requests = (resource: string): Seen[] => rig.server.seen.filter((seen) => seen.resource === resource);
const status = () => rig.source.status().resources.Service!;

/** Waits until the source has met so many failures with Services. */
const failed = (count: number) =>
  vi.waitFor(() => expect(status().failures - failuresBefore).toBe(count), patiently);

/** Lets pending I/O happen without moving the clock. */
const settle = (ms = 60) => new Promise((resolve) => setTimeout(resolve, ms));

const kindOf = (seen: Seen): string =>
  seen.verb === "list"
    ? "list"
    : seen.query.has("sendInitialEvents")
      ? "stream"
      : `watch ${seen.query.get("resourceVersion")}`;

const text = (requested: readonly Seen[]) => requested.map(kindOf);

it("02/21 22/15 sends exactly kube-proxy's selectors, the same on list and watch", async () => {
  await synced({ streaming: false });
  const asked = (resource: string) => [
    ...new Set(
      requests(resource).map(({ query }) => `${query.get("labelSelector")} ${query.get("fieldSelector")}`),
    ),
  ];
  expect(asked("services")).toEqual(["!service.kubernetes.io/service-proxy-name spec.clusterIP!=None"]);
  expect(asked("endpointslices")).toEqual(["!service.kubernetes.io/headless null"]);
  expect(asked("servicecidrs")).toEqual(["null null"]);
  expect(asked("nodes")).toEqual(["null metadata.name=node-1"]);
  expect(requests("services")[0]!.url).toContain(
    "labelSelector=%21service.kubernetes.io%2Fservice-proxy-name",
  );
  expect(requests("services")[0]!.url).toContain("fieldSelector=spec.clusterIP%21%3DNone");
});

it("02/20 a Service leaves with the proxy-name label and comes back without it", async () => {
  await synced();
  const before = rig.seen();
  rig.server.put(service("web", "172.30.0.1", { "service.kubernetes.io/service-proxy-name": "other" }));
  await vi.waitFor(() => expect(rig.snapshots.at(-1)!.ipv4.ports.size).toBe(0), patiently);
  rig.server.put(service("web"));
  await vi.waitFor(() => expect(rig.seen()).toEqual(before), patiently);
});

it("22/1 a connection cut in mid-watch resumes from the last version, without a list", async () => {
  await synced();
  const { resourceVersion } = rig.server.put(service("other", "172.30.0.2")).metadata;
  await agrees();
  const before = requests("services").length;
  for (const watch of rig.server.watches({ resource: "services" })) watch.wire.destroy();
  await failed(1);
  rig.server.put(service("third", "172.30.0.3"));
  clock.advance(1199);
  await settle();
  expect(requests("services")).toHaveLength(before);
  clock.advance(1);
  await agrees();
  expect(text(requests("services").slice(before))).toEqual([`watch ${resourceVersion}`]);
});

it("22/1 a line cut in the middle is not half believed", async () => {
  await synced();
  for (const watch of rig.server.watches({ resource: "endpointslices" }))
    watch.wire.arm({ kind: "reset", afterBytes: 120 });
  rig.server.put(slice("web-1", "web", ["10.0.0.1", "10.0.0.2"]));
  await vi.waitFor(() => expect(rig.source.status().resources.EndpointSlice!.reconnects).toBe(1), patiently);
  await catchesUp();
  expect(requests("endpointslices").filter((seen) => seen.verb === "list")).toEqual([]);
});

it("22/2 a server that refuses connections is tried 0.8 s·2ⁿ apart, then resumed without a list", async () => {
  await synced();
  await rig.server.close();
  await failed(1);
  // With a chance of one half the pauses are 1.5 d.
  for (const [i, pause] of [1200, 2400, 4800, 9600, 19_200, 38_400, 45_000, 45_000].entries()) {
    await vi.waitFor(() => expect(clock.pending()).toBe(4), patiently);
    clock.advance(pause - 1);
    await settle(20);
    expect(status().failures).toBe(1 + i);
    clock.advance(1);
    await failed(2 + i);
  }
  expect(rig.seen()).toEqual(rig.truth());
  rig.server.put(service("after", "172.30.0.9"));
  const before = rig.server.seen.length;
  await rig.server.listen();
  clock.advance(60_000);
  await agrees();
  expect(rig.server.seen.slice(before).every((seen) => kindOf(seen).startsWith("watch"))).toBe(true);
});

it("the first watch that the server takes again wakes the others", async () => {
  let calls = 0;
  // Pauses of d, 1.25 d, 1.5 d and 1.75 d.
  await synced({ random: () => (calls++ % 4) / 4 });
  await rig.server.close();
  for (let i = 1; i <= 7; i++) {
    await failed(i);
    await vi.waitFor(() => expect(clock.pending()).toBe(4), patiently);
    if (i < 7) clock.advance(60_000);
  }
  rig.server.put(service("after", "172.30.0.9"));
  await rig.server.listen();
  clock.advance(30_000);
  await vi.waitFor(() => expect(rig.server.watches()).not.toEqual([]), patiently);
  await settle();
  clock.advance(1000);
  await watching(4);
  await agrees();
});

it("restarts of the server that lie apart are waited for anew each time, and a rotated token is shown at once", async () => {
  let token = "one";
  const file = join(await mkdtemp(join(tmpdir(), "turnout-source-")), "token");
  await writeFile(file, token);
  await synced({ server: { token: () => token }, tokenFile: file });
  for (const next of ["two", "three", "four", "five"]) {
    await rig.server.close();
    for (const [i, pause] of [1200, 2400].entries()) {
      await vi.waitFor(() => expect(clock.pending()).toBe(4), patiently);
      await failed(1 + i);
      clock.advance(pause);
    }
    await failed(3);
    token = next;
    await writeFile(file, token);
    rig.server.put(service(next, "172.30.0.9"));
    await rig.server.listen();
    await vi.waitFor(() => expect(clock.pending()).toBe(4), patiently);
    clock.advance(4800);
    await watching();
    await agrees();
    expect(status().failures - failuresBefore).toBe(3);
    failuresBefore = status().failures;
    clock.advance(10_000);
  }
  await rm(dirname(file), { recursive: true });
});

it("22/3 an ERROR 410 in a stream that stays open leads to exactly one list, at once", async () => {
  await synced();
  const before = requests("services").length;
  const status410 = { kind: "Status", status: "Failure", code: 410, reason: "Expired", message: "too old" };
  for (const watch of rig.server.watches({ resource: "services" })) {
    watch.wire.send(`${JSON.stringify({ type: "ERROR", object: status410 })}\n`);
  }
  await failed(1);
  await watching();
  await settle();
  expect(text(requests("services").slice(before))).toEqual(["stream"]);
  rig.server.put(service("later", "172.30.0.5"));
  await agrees();
});

it("22/3 22/4 HTTP 410 on watch, then on the list: the second list is without a version", async () => {
  await synced({ streaming: false });
  const before = requests("services").length;
  rig.server.faults.arm({ resource: "services", verb: "watch" }, { kind: "status", code: 410 });
  rig.server.faults.arm({ resource: "services", verb: "list" }, { kind: "status", code: 410 });
  rig.server.dropConnections();
  await failed(1);
  clock.advance(2000);
  await vi.waitFor(() => expect(requests("services").length).toBeGreaterThanOrEqual(before + 4), patiently);
  const after = requests("services").slice(before);
  const asked = after.map(
    (seen) => `${seen.verb} ${seen.query.get("resourceVersion")} ${seen.query.get("limit")}`,
  );
  const version = after[0]!.query.get("resourceVersion");
  expect(asked.slice(0, 3)).toEqual([`watch ${version} null`, `list ${version} null`, "list null 500"]);
  await agrees();
});

it("22/4 a version the server has not reached leads to a list without version", async () => {
  await synced();
  const version = rig.server.store.version;
  for (const name of ["a", "b", "c"]) rig.server.put(service(name, "172.30.1.1"));
  await agrees();
  await rig.server.close();
  // A backup is restored: the counter goes back, and what happened since never happened.
  rig.server.store.restore(version);
  await rig.server.listen();
  rig.server.faults.arm({ verb: "watch", resource: "services" }, { kind: "status", code: 410 });
  await catchesUp();
  expect(rig.snapshots.at(-1)!.ipv4.ports.size).toBe(1);
});

it("22/5 429 with Retry-After: silence for that long, then the same watch", async () => {
  await synced();
  const before = requests("services").length;
  rig.server.faults.arm({ resource: "services" }, { kind: "status", code: 429, retryAfter: 3 });
  rig.server.dropConnections();
  await failed(1);
  clock.advance(1200);
  await failed(2);
  clock.advance(2999);
  await settle();
  expect(requests("services")).toHaveLength(before + 1);
  clock.advance(1);
  await vi.waitFor(() => expect(requests("services")).toHaveLength(before + 2), patiently);
  const [first, second] = text(requests("services").slice(before));
  expect(first).toMatch(/^watch/);
  expect(second).toBe(first);
});

it("5xx keeps the state, backs off and resumes", async () => {
  await synced();
  rig.server.faults.arm({ resource: "services" }, { kind: "status", code: 500 }, 3);
  rig.server.dropConnections();
  await failed(1);
  rig.server.put(service("new", "172.30.0.7"));
  rig.server.remove("Service", "shop", "web");
  for (let i = 2; i <= 4; i++) {
    clock.advance(15_000);
    await failed(i);
  }
  clock.advance(60_000);
  await agrees();
  expect(status().relists).toBe(0);
  expect(status().lastError!.message).toBe("told to answer 500");
});

it("22/6 broken, unknown and strange lines lose and invent nothing", async () => {
  await synced();
  const send = (line: string) => {
    for (const watch of rig.server.watches({ resource: "services" })) watch.wire.send(line);
  };
  send(`${JSON.stringify({ type: "WHATEVER", object: { metadata: { name: "x" } } })}\n\n`);
  rig.server.put(service("odd", "172.30.0.4", { note: "ok" }));
  rig.server.put({
    ...service("odd", "172.30.0.4"),
    metadata: { name: "odd", namespace: "shop", annotations: { a: "\u2028ü\u{1f682}" } },
  });
  await agrees();
  expect(status().reconnects).toBe(0);
  send('{"type":"ADDED","object":{"metadata":{"name":\n');
  rig.server.put(service("next", "172.30.0.5"));
  await failed(1);
  await catchesUp();
  send('{"type":"ERROR","object":{"kind":"Status","code":500,"message":"no"}}\n');
  await failed(2);
  rig.server.remove("Service", "shop", "odd");
  await catchesUp();
});

it("22/6 characters torn across chunks and slow drips arrive whole", async () => {
  await synced();
  for (const watch of rig.server.watches()) watch.wire.arm({ kind: "drip", bytes: 3, everyMs: 1 });
  rig.server.put(slice("web-1", "web", ["10.0.0.7"], { annotations: { note: "üüüüü🚂🚂🚂" } }));
  await agrees();
  expect(rig.source.status().resources.EndpointSlice!.reconnects).toBe(0);
});

it("22/7 a streaming list counts only when its end is marked", async () => {
  await synced();
  for (let i = 0; i < 50; i++) rig.server.put(service(`s${i}`, `172.30.2.${i}`));
  await agrees();
  const known = rig.seen();
  rig.server.store.compact();
  await rig.server.close();
  await failed(1);
  for (let i = 0; i < 50; i++) rig.server.remove("Service", "shop", `s${i}`);
  rig.server.store.compact();
  await rig.server.listen();
  rig.server.faults.arm({ resource: "services", verb: "watch" }, { kind: "status", code: 410 });
  rig.server.faults.arm({ resource: "services", verb: "watch" }, { kind: "reset", afterBytes: 100 });
  clock.advance(2000);
  await failed(3);
  await settle();
  expect(rig.seen()).toEqual(known);
  await catchesUp();
});

it("22/7 a server that refuses streaming lists is listed; one that does not know them too, after a while", async () => {
  await synced({ streaming: false });
  expect(text(requests("services")).slice(0, 2)).toEqual(["stream", "list"]);
  await rig.stop();
  await started({
    prepare(server) {
      server.faults.arm({ verb: "watch" }, { kind: "ignore-initial-events" }, 4);
      server.put(service("web"));
    },
  });
  await watching();
  await settle();
  expect(rig.snapshots).toEqual([]);
  clock.advance(30_000);
  await agrees();
  await watching();
  expect(text(requests("services")).slice(0, 2)).toEqual(["stream", "list"]);
});

it("22/8 each event of a compressed stream arrives at once", async () => {
  await synced();
  expect(requests("services")[0]!.headers["accept-encoding"]).toBe("gzip");
  for (let i = 0; i < 5; i++) {
    rig.server.put(service("web", `172.30.3.${i}`));
    await agrees();
  }
});

it("22/9 bookmarks advance the point of resumption, initial events do not", async () => {
  await synced();
  for (let i = 0; i < 5; i++) rig.server.put(slice("web-1", "web", [`10.0.1.${i}`]));
  for (const watch of rig.server.watches({ resource: "services" })) watch.bookmark();
  const version = rig.server.store.version;
  await agrees();
  const before = requests("services").length;
  rig.server.dropConnections();
  await failed(1);
  clock.advance(2000);
  await vi.waitFor(
    () => expect(text(requests("services").slice(before))).toEqual([`watch ${version}`]),
    patiently,
  );
});

it("repeated bookmarks are harmless; one that goes back means a list", async () => {
  await synced();
  for (let i = 0; i < 3; i++)
    for (const watch of rig.server.watches({ resource: "services" })) watch.bookmark();
  rig.server.put(service("b", "172.30.0.2"));
  await agrees();
  expect(status().reconnects).toBe(0);
  for (const watch of rig.server.watches({ resource: "services" })) watch.bookmark(2);
  await failed(1);
  rig.server.remove("Service", "shop", "b");
  await catchesUp();
  expect(status().relists).toBe(1);
});

it("22/10 what vanished unseen is gone after the list, and a Node of the same name with another UID was deleted", async () => {
  await synced();
  const events: string[] = [];
  const stop = new AbortController();
  const followed = (async () => {
    for await (const event of rig.source.nodeEvents(stop.signal)) events.push(event.kind);
  })();
  await vi.waitFor(() => expect(events).toEqual(["present"]), patiently);
  const before = rig.snapshots.length;
  await rig.server.close();
  await failed(1);
  rig.server.remove("Service", "shop", "web");
  rig.server.remove("Node", "", "node-1");
  rig.server.put(node("192.168.0.2"));
  rig.server.store.compact();
  await rig.server.listen();
  await catchesUp();
  const changed = rig.snapshots.slice(before).flatMap(({ ipv4 }) => [...ipv4.changed]);
  expect(changed).toEqual(["shop/web/tcp/web"]);
  await vi.waitFor(() => expect(events).toEqual(["present", "deleted", "present"]), patiently);
  rig.server.remove("Node", "", "node-1");
  await vi.waitFor(() => expect(events.at(-1)).toBe("deleted"), patiently);
  stop.abort();
  await followed;
});

it("22/11 an empty cluster is in sync, and no Snapshot comes before every resource is", async () => {
  await started({
    prepare: (server) => server.faults.arm({ resource: "endpointslices" }, { kind: "status", code: 500 }),
  });
  await vi.waitFor(
    () => expect(rig.source.status().resources.EndpointSlice!.lastError).not.toBeNull(),
    patiently,
  );
  await watching(3);
  rig.server.put(service("web"));
  await settle();
  expect(rig.snapshots).toEqual([]);
  expect(rig.source.status().synced).toBe(false);
  await catchesUp();
  expect(rig.snapshots).toHaveLength(1);
  expect(rig.source.status().synced).toBe(true);
});

it("nobody waits for ServiceCIDRs that are not served or not allowed", async () => {
  await started({
    prepare(server) {
      server.put(service("web"));
      server.faults.arm({ resource: "servicecidrs" }, { kind: "status", code: 404 });
    },
  });
  await agrees();
  await watching(3);
  rig.server.put(serviceCIDR("late", "172.30.0.0/16"));
  clock.advance(60_000);
  await settle();
  expect(requests("servicecidrs")).toHaveLength(1);
  clock.advance(600_000);
  await agrees();
});

it("22/12 pages: every object is there, and an expired token leads to one complete list", async () => {
  const prepare = (server: ApiServer) => {
    server.faults.refuseStreamingLists = true;
    for (let i = 0; i < 1100; i++) server.put(service(`s${i}`, `172.30.${i >> 8}.${i & 255}`));
  };
  const limits = () =>
    requests("services")
      .filter(({ verb }) => verb === "list")
      .map(({ query }) => `${query.get("limit")} ${query.has("continue")}`);
  await started({ prepare });
  await agrees();
  expect(limits()).toEqual(["500 false", "500 true", "500 true"]);
  await rig.stop();
  await started({
    prepare(server) {
      prepare(server);
      // The third page comes too late.
      const slowly = { kind: "drip", bytes: 1 << 20, everyMs: 1 } as const;
      server.faults.arm({ resource: "services", verb: "list" }, slowly, 2);
      server.faults.arm({ resource: "services", verb: "list" }, { kind: "status", code: 410 });
    },
  });
  await agrees();
  expect(limits()).toEqual(["500 false", "500 true", "500 true", "null false"]);
});

it("22/12 a page without items but with a token is not the end", async () => {
  const empty = {
    kind: "ServiceList",
    apiVersion: "v1",
    metadata: { resourceVersion: "1", continue: btoa(JSON.stringify({ rv: 2, start: "" })) },
    items: [],
  };
  await started({
    prepare(server) {
      server.faults.refuseStreamingLists = true;
      server.put(service("web"));
      const body = { kind: "body", contentType: "application/json", text: JSON.stringify(empty) } as const;
      server.faults.arm({ resource: "services", verb: "list" }, body);
    },
  });
  await agrees();
  expect(rig.snapshots.at(-1)!.ipv4.ports.size).toBe(1);
  expect(requests("services").filter(({ verb }) => verb === "list")).toHaveLength(2);
});

it("a watch that ends at once without an event is not opened again at once", async () => {
  await synced();
  const endAll = () => {
    for (const watch of rig.server.watches({ resource: "services" })) watch.wire.end();
  };
  const before = requests("services").length;
  endAll();
  await vi.waitFor(() => expect(requests("services")).toHaveLength(before + 1), patiently);
  await watching();
  endAll();
  await failed(1);
  await settle();
  expect(requests("services")).toHaveLength(before + 1);
  clock.advance(1200);
  await vi.waitFor(() => expect(requests("services")).toHaveLength(before + 2), patiently);
});

// There are no handlers that could throw: what cannot be read is a Problem.
it("22/13 an object that cannot be read is reported, the others go on, and mended it counts", async () => {
  await synced();
  const odd = { ...service("odd", "172.30.0.4"), spec: { clusterIP: 7, ports: "none" } };
  rig.server.put(odd);
  rig.server.put(service("after", "172.30.0.5"));
  await vi.waitFor(() => expect(rig.snapshots.at(-1)!.ipv4.ports.size).toBe(2), patiently);
  expect(rig.snapshots.at(-1)!.problems.map(({ object }) => object)).toContain("Service shop/odd");
  rig.server.put(service("odd", "172.30.0.4"));
  await vi.waitFor(() => expect(rig.snapshots.at(-1)!.ipv4.ports.size).toBe(3), patiently);
  expect(rig.snapshots.at(-1)!.problems).toEqual([]);
  expect(status().reconnects).toBe(0);
});

it("22/14 a quiet watch with bookmarks keeps its connection, one without a byte is re-opened", async () => {
  await synced({ random: () => 1 });
  for (let minute = 0; minute < 10; minute++) {
    for (const watch of rig.server.watches()) watch.bookmark();
    await settle(20);
    clock.advance(60_000);
  }
  expect(status().reconnects).toBe(0);
  for (const watch of rig.server.watches()) watch.wire.arm({ kind: "silent" });
  rig.server.put(service("unheard", "172.30.0.8"));
  clock.advance(150_000);
  await failed(1);
  await catchesUp();
  expect(status().relists).toBe(0);
});

it("a server that went back in time and is silent about it is found out", async () => {
  await synced();
  const version = rig.server.store.version;
  for (let i = 0; i < 20; i++) rig.server.put(service("web", `172.30.0.${i + 1}`));
  await agrees();
  await rig.server.close();
  rig.server.store.restore(version);
  await rig.server.listen();
  await failed(1);
  clock.advance(2000);
  // Real servers say nothing on a watch from a version they have not reached.
  for (let i = 2; i <= 4; i++) {
    await vi.waitFor(() => expect(rig.server.watches({ resource: "services" })).toHaveLength(1), patiently);
    await settle(20);
    clock.advance(150_000);
    await failed(i);
    clock.advance(2000);
  }
  await agrees();
});

it("a hung request is given up", async () => {
  await synced();
  rig.server.faults.arm({ resource: "services" }, { kind: "hang" });
  rig.server.dropConnections();
  await failed(1);
  clock.advance(1200);
  await vi.waitFor(() => expect(clock.pending()).toBeGreaterThan(0), patiently);
  await settle();
  rig.server.put(service("more", "172.30.0.6"));
  clock.advance(30_000);
  await failed(2);
  await catchesUp();
});

it("answers that are not from Kubernetes change nothing", async () => {
  await synced();
  const known = rig.seen();
  const html = { kind: "body", contentType: "text/html", text: "<html>captive portal</html>" } as const;
  rig.server.faults.arm({}, html, 4);
  rig.server.dropConnections();
  await failed(1);
  clock.advance(2000);
  await failed(2);
  expect(status().lastError!.message).toContain("text/html");
  expect(rig.seen()).toEqual(known);
  rig.server.faults.arm({}, { kind: "body", contentType: "application/json", text: "{}" }, 4);
  clock.advance(5000);
  await failed(3);
  expect(rig.seen()).toEqual(known);
  rig.server.put(service("real", "172.30.0.6"));
  await catchesUp();
});

it("truncated lists are asked for again", async () => {
  await started({
    prepare(server) {
      server.faults.refuseStreamingLists = true;
      server.put(service("web"));
      server.faults.arm({ verb: "list" }, { kind: "truncate", afterBytes: 50 }, 4);
    },
  });
  await failed(2);
  expect(status().lastError!.message).toContain("JSON");
  expect(rig.snapshots).toEqual([]);
  await catchesUp();
});

it("huge objects pass", async () => {
  await synced();
  const addresses = Array.from({ length: 5000 }, (_, i) => `10.1.${i >> 8}.${i & 255}`);
  rig.server.put(slice("huge", "web", addresses, { annotations: { ballast: "x".repeat(3 << 20) } }));
  await agrees();
  expect([...rig.snapshots.at(-1)!.ipv4.ports.values()][0]!.endpoints).toHaveLength(5001);
});

it("changes gather while the consumer is busy", async () => {
  await synced({ busy: () => settle(30) });
  const before = rig.snapshots.length;
  for (let i = 0; i < 200; i++) rig.server.put(service("web", `172.30.5.${i}`));
  await agrees();
  expect(rig.snapshots.length - before).toBeLessThan(50);
});

it("22/16 many watches later nothing is left open", async () => {
  await synced();
  for (let i = 0; i < 250; i++) {
    for (const watch of rig.server.watches()) watch.wire.end();
    await vi.waitFor(
      () => {
        clock.advance(1000);
        const reconnects = Object.values(rig.source.status().resources).map((each) => each.reconnects);
        expect(reconnects).toEqual([i + 1, i + 1, i + 1, i + 1]);
        expect(rig.server.watches()).toHaveLength(4);
      },
      { interval: 1 },
    );
  }
  expect(rig.server.connections).toBeLessThanOrEqual(8);
  // One timer for each watch: the wait for its next byte.
  expect(clock.pending()).toBeLessThanOrEqual(4);
});
