// The API source and the contents of a stream: broken events, split characters, streaming lists, bookmarks.
import { expect, it, vi } from "vitest";
import { service, slice } from "../../../test/support/api-rig.ts";
import {
  agrees,
  brokenEvent,
  catchesUp,
  clock,
  emptyEvent,
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
  it("22/6 broken, unknown and strange events lose and invent nothing", async () => {
    await synced();
    const watches = () => rig.server.watches({ resource: "services" });
    for (const watch of watches()) {
      watch.emit("WHATEVER", { kind: "Service", metadata: { name: "x" } });
      watch.wire.send(emptyEvent());
    }
    rig.server.put(service("odd", "172.30.0.4", { note: "ok" }));
    rig.server.put({
      ...service("odd", "172.30.0.4"),
      metadata: { name: "odd", namespace: "shop", annotations: { a: "\u2028ü\u{1f682}" } },
    });
    await agrees();
    expect(status().reconnects).toBe(0);
    for (const watch of watches()) watch.wire.send(brokenEvent());
    rig.server.put(service("next", "172.30.0.5"));
    await failed(1);
    await catchesUp();
    for (const watch of watches()) watch.emit("ERROR", { kind: "Status", code: 500, message: "no" });
    await failed(2);
    rig.server.remove("Service", "shop", "odd");
    await catchesUp();
  });

  it("22/6 an object without a version leads to a list, since a watch cannot resume after it", async () => {
    await synced();
    const before = requests("services").length;
    const { kind, metadata, spec } = service("web", "172.30.0.1");
    for (const watch of rig.server.watches({ resource: "services" })) {
      watch.emit("MODIFIED", { kind, metadata, spec });
    }
    await failed(1);
    rig.server.remove("Service", "shop", "web");
    await catchesUp();
    expect(text(requests("services").slice(before))).toEqual(["stream"]);
  });

  it("22/6 characters split across chunks and slow streams arrive whole", async () => {
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

  it("22/7 a server that refuses streaming lists is listed; one that ignores them too, after a timeout", async () => {
    await synced({ streaming: false });
    expect(text(requests("services")).slice(0, 2)).toEqual(["stream", "list"]);
    await rig.stop();
    await started({
      prepare(server) {
        server.faults.arm({ verb: "watch" }, { kind: "ignore-initial-events" }, 4);
        server.put(service("web"));
      },
    });
    await opened();
    await settle();
    expect(rig.snapshots).toEqual([]);
    clock.advance(30_000);
    await agrees();
    await watching();
    expect(text(requests("services")).slice(0, 2)).toEqual(["stream", "list"]);
  });

  it("22/8 each event of a compressed stream arrives immediately", async () => {
    await synced();
    expect(requests("services")[0]!.headers["accept-encoding"]).toBe("gzip");
    for (let i = 0; i < 5; i++) {
      rig.server.put(service("web", `172.30.3.${i}`));
      await agrees();
    }
  });

  it("22/9 bookmarks advance the version to resume from, initial events do not", async () => {
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

  it("repeated bookmarks are harmless; one that goes back leads to a list", async () => {
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
});
