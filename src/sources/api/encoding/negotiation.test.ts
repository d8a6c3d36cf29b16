// Which encoding is requested, and what happens when the server has another one or sends it damaged.
import { expect, it, vi } from "vitest";
import { service } from "../../../../test/support/api-rig.ts";
import {
  agrees,
  catchesUp,
  failed,
  patiently,
  requests,
  rig,
  started,
  status,
  synced,
  text,
} from "../../../../test/support/api-story.ts";
import { envelope, field, frame, protobufEncoder } from "../../../../test/support/protobuf/encode.ts";
import { acceptHeader } from "./accept.ts";

const protobuf = "application/vnd.kubernetes.protobuf";

it.each([
  ["defaults", protobuf, "", `${protobuf}, */*`],
  ["empty", "", "", `${protobuf}, */*`],
  ["JSON", "application/json", "", "application/json, */*"],
  ["given", protobuf, `${protobuf},application/json`, `${protobuf}, application/json`],
  ["given with weights", "", `application/json, ${protobuf};q=0.5`, `application/json, ${protobuf};q=0.5`],
  ["given wins", "application/json", protobuf, protobuf],
  ["unreadable", "application/yaml", "", "application/json"],
  ["partly unreadable", "", `application/cbor, ${protobuf}`, protobuf],
  ["another form", "", "application/json;as=Table;v=v1;g=meta.k8s.io, application/yaml", "application/json"],
])("clientConnection: %s", (_, contentType, acceptContentTypes, header) => {
  expect(acceptHeader({ contentType, acceptContentTypes })).toBe(header);
});

it("lists and watches are requested in protobuf, and read in it if the server has it", async () => {
  const counts = { objects: 0, events: 0 };
  const encoder = {
    ...protobufEncoder,
    object(body: unknown) {
      counts.objects++;
      return protobufEncoder.object(body);
    },
    event(type: string, object: object) {
      counts.events++;
      return protobufEncoder.event(type, object);
    },
  };
  await synced({ server: { encoder }, streaming: false });
  rig.server.put(service("web", "172.30.0.9"));
  await agrees();
  expect([...new Set(rig.server.seen.map(({ headers }) => headers.accept))]).toEqual([`${protobuf}, */*`]);
  // Four refused streaming lists, and four lists.
  expect(counts).toEqual({ objects: 8, events: 1 });
});

it.each([406, 415])("a server that answers %i is asked for JSON, immediately", async (code) => {
  await started({
    encoding: "protobuf",
    prepare(server) {
      server.put(service("web"));
      server.faults.arm({ resource: "services" }, { kind: "status", code });
    },
  });
  await agrees();
  expect(requests("services").map(({ headers }) => headers.accept)).toEqual([
    `${protobuf}, */*`,
    "application/json",
  ]);
  expect(status().failures).toBe(0);
});

it("a malformed event is reported with object and field; the list after it is JSON, and the next watch protobuf", async () => {
  await synced({ encoding: "protobuf" });
  const before = requests("services").length;
  const metadata = field(1, Buffer.concat([field(1, Buffer.from("bad")), field(3, Buffer.from("shop"))]));
  const object = Buffer.concat([metadata, field(2, field(3, Buffer.from("x")).subarray(0, 2))]);
  const raw = envelope("v1", "Service", object);
  const bad = frame(Buffer.concat([field(1, Buffer.from("MODIFIED")), field(2, field(1, raw))]));
  for (const watch of rig.server.watches({ resource: "services" })) watch.wire.send(bad);
  await failed(1);
  expect(status().lastError!.message).toBe(
    "Cannot read the watch: Service shop/bad: spec.clusterIP: a length exceeds the message",
  );
  rig.server.put(service("after", "172.30.0.7"));
  await catchesUp();
  await vi.waitFor(() => expect(rig.server.watches({ resource: "services" })).toHaveLength(1), patiently);
  for (const watch of rig.server.watches({ resource: "services" })) watch.wire.end();
  await vi.waitFor(() => expect(requests("services")).toHaveLength(before + 2), patiently);
  const after = requests("services").slice(before);
  expect(after.map(({ headers }) => headers.accept)).toEqual(["application/json", `${protobuf}, */*`]);
  expect(text(after)[0]).toBe("stream");
});

it("a malformed list is requested again as JSON", async () => {
  await started({
    encoding: "protobuf",
    prepare(server) {
      server.faults.refuseStreamingLists = true;
      server.put(service("web"));
      const body = envelope("v1", "ServiceList", Buffer.from([0x12, 0x05]));
      server.faults.arm(
        { resource: "services", verb: "list" },
        { kind: "body", contentType: protobuf, body },
      );
    },
  });
  await catchesUp();
  const lists = requests("services").filter(({ verb }) => verb === "list");
  expect(lists.map(({ headers }) => headers.accept)).toEqual([`${protobuf}, */*`, "application/json"]);
  expect(status().lastError!.message).toBe("Cannot read the response: a length exceeds the message");
});
