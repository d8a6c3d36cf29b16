// The API source when the server disconnects, refuses, is overloaded or loses state: it backs off and resumes.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { service, slice } from "../../../test/support/api-rig.ts";
import {
  agrees,
  catchesUp,
  clock,
  encoding,
  failed,
  inBothEncodings,
  opened,
  patiently,
  requests,
  rig,
  settle,
  started,
  status,
  synced,
  text,
  watching,
} from "../../../test/support/api-story.ts";

inBothEncodings(() => {
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

  it("22/1 a truncated event has no effect", async () => {
    await synced();
    for (const watch of rig.server.watches({ resource: "endpointslices" }))
      watch.wire.arm({ kind: "reset", afterBytes: 60 });
    rig.server.put(slice("web-1", "web", ["10.0.0.1", "10.0.0.2"]));
    await vi.waitFor(
      () => expect(rig.source.status().resources.EndpointSlice!.reconnects).toBe(1),
      patiently,
    );
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
    expect(text(rig.server.seen.slice(before)).every((request) => request.startsWith("watch"))).toBe(true);
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
    await opened(1);
    clock.advance(1000);
    await watching(4);
    await agrees();
  });

  it("separate restarts of the server each start a new back-off, and a rotated token is sent immediately", async () => {
    let token = "one";
    const folder = await mkdtemp(join(tmpdir(), "turnout-source-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    const file = join(folder, "token");
    await writeFile(file, token);
    await synced({ server: { token: () => token }, tokenFile: file });
    const each = (what: "failures" | "watchSince") =>
      Object.values(rig.source.status().resources).map((resource) => resource[what]);
    const allPause = (count: number) =>
      vi.waitFor(() => {
        expect(each("failures")).toEqual(Array(4).fill(count));
        expect(clock.pending()).toBe(4);
      }, patiently);
    let before = 0;
    for (const next of ["two", "three", "four", "five"]) {
      await rig.server.close();
      for (const [i, pause] of [1200, 2400].entries()) {
        await allPause(before + 1 + i);
        clock.advance(pause);
      }
      await allPause(before + 3);
      token = next;
      await writeFile(file, token);
      rig.server.put(service(next, "172.30.0.9"));
      await rig.server.listen();
      clock.advance(4800);
      // Each must have opened its watch: one that opens after the next pause has not lasted long enough.
      const openedNow = () => expect(each("watchSince")).toEqual(Array(4).fill(clock.wall()));
      await vi.waitFor(openedNow, patiently);
      await agrees();
      expect(each("failures")).toEqual(Array(4).fill(before + 3));
      before += 3;
      clock.advance(10_000);
    }
  });

  it("22/3 an ERROR 410 in a stream that stays open leads to exactly one list, immediately", async () => {
    await synced();
    const before = requests("services").length;
    const status410 = { kind: "Status", status: "Failure", code: 410, reason: "Expired", message: "too old" };
    for (const watch of rig.server.watches({ resource: "services" })) {
      watch.emit("ERROR", status410);
    }
    await failed(1);
    const since = () => text(requests("services").slice(before));
    await vi.waitFor(() => expect(since()).toEqual(["stream"]), patiently);
    await settle();
    expect(since()).toEqual(["stream"]);
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
    const lines = after.map(
      (seen) => `${seen.verb} ${seen.query.get("resourceVersion")} ${seen.query.get("limit")}`,
    );
    const version = after[0]!.query.get("resourceVersion");
    expect(lines.slice(0, 3)).toEqual([`watch ${version} null`, `list ${version} null`, "list null 500"]);
    await agrees();
  });

  it("22/4 a version the server has not reached leads to a list without version", async () => {
    await synced();
    const version = rig.server.store.version;
    for (const name of ["a", "b", "c"]) rig.server.put(service(name, "172.30.1.1"));
    await agrees();
    await rig.server.close();
    // A backup is restored: the counter goes back, and later changes are lost.
    rig.server.store.restore(version);
    await rig.server.listen();
    rig.server.faults.arm({ verb: "watch", resource: "services" }, { kind: "status", code: 410 });
    await catchesUp();
    expect(rig.snapshots.at(-1)!.ipv4.ports.size).toBe(1);
  });

  it("22/5 429 with Retry-After: no request for that long, then the same watch", async () => {
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
    expect(status().lastError!.message).toContain("500");
  });

  it("a watch that ends immediately without an event is opened again after a pause", async () => {
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

  // There are no handlers that could throw: unreadable objects are Problems.
  it("22/14 a quiet watch with bookmarks keeps its connection, one without a byte is re-opened", async () => {
    await synced({ random: () => 1 });
    for (let minute = 0; minute < 10; minute++) {
      for (const watch of rig.server.watches()) watch.bookmark();
      await settle(20);
      clock.advance(60_000);
    }
    expect(status().reconnects).toBe(0);
    for (const watch of rig.server.watches()) watch.wire.arm({ kind: "silent" });
    rig.server.put(service("missed", "172.30.0.8"));
    clock.advance(150_000);
    await failed(1);
    await catchesUp();
    expect(status().relists).toBe(1);
  });

  it("behaviour/2: a server without bookmarks may be quiet for the whole time of a watch", async () => {
    await synced({ random: () => 1 });
    clock.advance(600_000);
    await settle();
    expect(status()).toMatchObject({ reconnects: 0, failures: 0 });
    for (const watch of rig.server.watches()) watch.wire.arm({ kind: "silent" });
    rig.server.put(service("missed", "172.30.0.8"));
    clock.advance(29_999);
    await settle();
    expect(status()).toMatchObject({ reconnects: 0, failures: 0 });
    clock.advance(1);
    await agrees();
    await vi.waitFor(() => expect(status().relists).toBe(1), patiently);
    expect(status()).toMatchObject({ lastError: null, failing: false });
    expect(status().lastRestart!.reason).toMatch(/^No bytes from the watch for/);
  });

  it("behaviour/2: a quiet watch is listed again immediately, and is an error only when that fails", async () => {
    await synced();
    for (const watch of rig.server.watches()) watch.bookmark();
    // It follows the bookmark on the same watch.
    rig.server.put(service("later", "172.30.0.8"));
    await agrees();
    for (const watch of rig.server.watches()) watch.wire.arm({ kind: "silent" });
    rig.server.faults.arm({ resource: "services" }, { kind: "status", code: 500 });
    const before = requests("services").length;
    clock.advance(150_000);
    await failed(2);
    expect(text(requests("services").slice(before))).toEqual(["stream"]);
    expect(status()).toMatchObject({ failing: true, lastError: { message: expect.stringContaining("500") } });
    clock.advance(1200);
    await watching();
    await vi.waitFor(() => expect(status().failing).toBe(false), patiently);
  });

  it("behaviour/2: versions out of order never make the pauses grow", async () => {
    await synced();
    for (let i = 1; i <= 10; i++) {
      const before = requests("services").length;
      rig.server.put(service("web", `172.30.0.${i + 1}`));
      for (const watch of rig.server.watches({ resource: "services" })) watch.bookmark(1);
      await failed(i);
      // The first is immediate, and later ones come at most one second after the one before.
      if (i > 1) clock.advance(1000);
      await vi.waitFor(() => expect(text(requests("services").slice(before))).toEqual(["stream"]), patiently);
      await vi.waitFor(() => expect(status().relists).toBe(i), patiently);
      await agrees();
      await watching();
    }
    expect(status()).toMatchObject({ lastError: null, failing: false });
  });

  it("reports in which encoding its watch arrives", async () => {
    await synced();
    await vi.waitFor(() => expect(status().encoding).toBe(encoding), patiently);
  });

  it("behaviour/2: watches that are lost one after another do not make the pauses grow", async () => {
    await synced();
    for (let i = 1; i <= 5; i++) {
      for (const watch of rig.server.watches({ resource: "services" })) watch.wire.destroy();
      await failed(i);
      clock.advance(1200);
      await watching();
      await vi.waitFor(() => expect(status().watchSince).not.toBeNull(), patiently);
    }
    expect(status()).toMatchObject({ lastError: null, failing: false });
  });

  it("behaviour/2: a list that is cut every time is an error", async () => {
    await started({
      prepare(server) {
        server.put(service("web"));
        server.faults.arm({ resource: "services" }, { kind: "reset", afterBytes: 20 }, 3);
      },
    });
    for (const count of [1, 2, 3]) {
      await failed(count);
      expect(status()).toMatchObject({ failing: true, lastRestart: null });
      clock.advance(30_000);
    }
    await catchesUp();
    expect(status().failing).toBe(false);
  });

  it("detects a server whose versions went backwards without an error", async () => {
    await synced();
    const version = rig.server.store.version;
    for (let i = 0; i < 20; i++) rig.server.put(service("web", `172.30.0.${i + 1}`));
    for (const watch of rig.server.watches()) watch.bookmark();
    await agrees();
    await rig.server.close();
    rig.server.store.restore(version);
    await rig.server.listen();
    await failed(1);
    clock.advance(2000);
    // Real servers send nothing on a watch from a version they have not reached, but refuse to list it.
    await opened();
    clock.advance(150_000);
    await failed(3);
    await agrees();
  });

  it("a request without a response times out", async () => {
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
        { ...patiently, interval: 1 },
      );
    }
    expect(rig.server.connections).toBeLessThanOrEqual(8);
    // One timer for each watch: the wait for its next byte.
    expect(clock.pending()).toBeLessThanOrEqual(4);
  });
});
