// The API source and lists: missed deletions, pages, and invalid responses.
import { expect, it, vi } from "vitest";
import type { ApiServer } from "../../../playground/api/server.ts";
import { node, service } from "../../../test/support/api-rig.ts";
import {
  agrees,
  bodyOf,
  catchesUp,
  clock,
  encoding,
  failed,
  inBothEncodings,
  patiently,
  requests,
  rig,
  settle,
  started,
  status,
  synced,
} from "../../../test/support/api-story.ts";

inBothEncodings(() => {
  it("22/10 objects deleted while disconnected are gone after the list, and a Node of the same name with another UID was deleted", async () => {
    await synced();
    const { events, stop } = await followNode();
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
    await stop();
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
        // The third page has expired.
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
        server.faults.arm({ resource: "services", verb: "list" }, bodyOf(empty));
      },
    });
    await agrees();
    expect(rig.snapshots.at(-1)!.ipv4.ports.size).toBe(1);
    expect(requests("services").filter(({ verb }) => verb === "list")).toHaveLength(2);
  });

  it("22/12 a repeated continue token ends the list", async () => {
    await started({
      prepare(server) {
        server.faults.refuseStreamingLists = true;
        server.put(service("web"));
        const page = {
          kind: "ServiceList",
          metadata: { resourceVersion: "1", continue: "again" },
          items: [],
        };
        server.faults.arm({ resource: "services", verb: "list" }, bodyOf(page), 2);
      },
    });
    await failed(2);
    expect(status().lastError!.message).toBe("Cannot list services: the continue token repeats");
    await catchesUp();
    expect(requests("services").filter(({ verb }) => verb === "list")).toHaveLength(3);
  });

  it("ignores other Nodes from a server that ignores selectors", async () => {
    await synced();
    const { events, stop } = await followNode();
    const metadata = { name: "node-2", resourceVersion: "1000000" };
    for (const watch of rig.server.watches({ resource: "nodes" }))
      for (const type of ["ADDED", "MODIFIED", "DELETED"])
        watch.emit(type, { ...node("192.168.0.2"), metadata });
    const lastEventAt = () => rig.source.status().resources.Node!.lastEventAt;
    await vi.waitFor(() => expect(lastEventAt()).toBe(clock.wall()), patiently);
    await settle();
    expect(events).toEqual(["present"]);
    expect(rig.snapshots.at(-1)!.node!.addresses).toEqual(["192.168.0.1"]);
    await stop();
  });

  it("responses that are not from Kubernetes change nothing", async () => {
    await synced();
    const known = rig.seen();
    const html = { kind: "body", contentType: "text/html", body: "<html>captive portal</html>" } as const;
    rig.server.faults.arm({}, html, 4);
    rig.server.dropConnections();
    await failed(1);
    clock.advance(2000);
    await failed(2);
    expect(status().lastError!.message).toContain("text/html");
    expect(rig.seen()).toEqual(known);
    rig.server.faults.arm({}, { kind: "body", contentType: "application/json", body: "{}" }, 4);
    clock.advance(5000);
    await failed(3);
    expect(rig.seen()).toEqual(known);
    rig.server.put(service("real", "172.30.0.6"));
    await catchesUp();
  });

  it("truncated lists are requested again", async () => {
    await started({
      prepare(server) {
        server.faults.refuseStreamingLists = true;
        server.put(service("web"));
        server.faults.arm({ verb: "list" }, { kind: "truncate", afterBytes: 50 }, 4);
      },
    });
    await failed(2);
    const cause = encoding === "json" ? "JSON" : "a length exceeds the message";
    expect(status().lastError!.message).toContain(cause);
    expect(rig.snapshots).toEqual([]);
    await catchesUp();
  });
});

/** The names of this Node's events, once it is present. */
async function followNode(): Promise<{
  readonly events: readonly string[];
  readonly stop: () => Promise<void>;
}> {
  const events: string[] = [];
  const end = new AbortController();
  const followed = (async () => {
    for await (const event of rig.source.nodeEvents(end.signal)) events.push(event.kind);
  })();
  await vi.waitFor(() => expect(events).toEqual(["present"]), patiently);
  const stop = () => {
    end.abort();
    return followed;
  };
  return { events, stop };
}
