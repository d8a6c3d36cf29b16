// Random histories of a cluster under random faults: at the end the Snapshot is the server's state, and on the
// way nothing that was replaced or deleted returned.
import fc from "fast-check";
import { expect, it, vi } from "vitest";
import type { Fault } from "../../../playground/api/faults.ts";
import { jsonEncoder } from "../../../playground/api/http/encoder.ts";
import {
  type ApiRig,
  apiRig,
  type EncodingName,
  encodings,
  node,
  service,
  serviceCIDR,
  slice,
} from "../../../test/support/api-rig.ts";
import { fastClock } from "../../../test/support/fast-clock.ts";
import { frame, protobufEncoder } from "../../../test/support/protobuf/encode.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { reflectorFigures } from "./reflector.ts";

const encoders = { json: jsonEncoder, protobuf: protobufEncoder };
const brokenEvents = {
  json: '{"type":"ADDED","object":\n',
  protobuf: frame(Buffer.from("\n\u0005ADDED\u0012\u00ff")),
};
const oldBookmark = { kind: "Service", metadata: { resourceVersion: "1" } };

const resources = ["services", "endpointslices", "nodes", "servicecidrs"] as const;

const faultsIn = (encoding: EncodingName): readonly Fault[] => [
  { kind: "status", code: 410 },
  { kind: "status", code: 429, retryAfter: 2 },
  { kind: "status", code: 500 },
  { kind: "status", code: 503, retryAfter: 1 },
  { kind: "status", code: 401 },
  { kind: "hang" },
  { kind: "drop" },
  { kind: "reset", afterBytes: 1 },
  { kind: "reset", afterBytes: 700 },
  { kind: "truncate", afterBytes: 333 },
  { kind: "silent" },
  { kind: "drip", bytes: 50, everyMs: 1 },
  { kind: "body", contentType: "text/html", body: "<html></html>" },
  { kind: "body", contentType: "application/json", body: "[]" },
  { kind: "prelude", body: brokenEvents[encoding] },
  { kind: "prelude", body: encoders[encoding].event("BOOKMARK", oldBookmark) },
  { kind: "ignore-initial-events" },
];

type OpenWatch = ReturnType<ApiRig["server"]["watches"]>[number];

const errorStatus = (code: number) => ({ kind: "Status", code, message: "error" });

/** What happens to watches that are open. */
const disturbances: readonly ((watch: OpenWatch, encoding: EncodingName) => void)[] = [
  (watch) => watch.wire.destroy(),
  (watch) => watch.wire.end(),
  (watch) => watch.wire.arm({ kind: "reset", afterBytes: 150 }),
  (watch) => watch.wire.arm({ kind: "silent" }),
  (watch, encoding) => watch.wire.send(brokenEvents[encoding]),
  (watch) => watch.emit("ERROR", errorStatus(410)),
  (watch) => watch.emit("ERROR", errorStatus(500)),
  (watch) => watch.bookmark(1),
  (watch) => watch.bookmark(),
];

const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant("service" as const), i: fc.nat(5) }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant("slice" as const), i: fc.nat(5) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("delete" as const), i: fc.nat(5) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("hide" as const), i: fc.nat(5) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("node" as const), i: fc.nat(5) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("cidr" as const), i: fc.nat(2) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("compact" as const), i: fc.constant(0) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("restart" as const), i: fc.constant(0) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("outage" as const), i: fc.nat(60) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("streaming" as const), i: fc.nat(1) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("wait" as const), i: fc.nat(20) }) },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant("fault" as const),
      i: fc.nat(faultsIn("json").length - 1),
      on: fc.constantFrom(...resources),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("disturb" as const),
      i: fc.nat(disturbances.length - 1),
      on: fc.constantFrom(...resources),
    }),
  },
);

type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Runs one step; every written state has a number that only grows. */
async function play(rig: ApiRig, each: Step, number: number, encoding: EncodingName): Promise<void> {
  const { server } = rig;
  const name = `s${each.i}`;
  switch (each.do) {
    case "service":
      return void server.put(numbered(name, number));
    case "hide":
      return void server.put(numbered(name, number, { "service.kubernetes.io/service-proxy-name": "other" }));
    case "slice":
      return void server.put(slice(name, name, [`10.0.${number >> 8}.${number & 255}`]));
    case "delete":
      if (server.list("Service").some(({ metadata }) => metadata.name === name))
        server.remove("Service", "shop", name);
      return;
    case "node":
      return void server.put(node(`192.168.0.${each.i + 1}`));
    case "cidr":
      return void server.put(serviceCIDR(`c${each.i}`, `172.${16 + (number % 16)}.0.0/16`));
    case "compact":
      server.store.compact();
      return;
    case "restart":
      return server.restart();
    case "outage":
      await server.close();
      await pause(each.i);
      return server.listen();
    case "streaming":
      server.faults.refuseStreamingLists = each.i === 1;
      return;
    case "wait":
      await pause(each.i);
      return;
    case "fault":
      server.faults.arm({ resource: each.on }, faultsIn(encoding)[each.i]!);
      return;
    case "disturb":
      for (const watch of server.watches({ resource: each.on })) disturbances[each.i]!(watch, encoding);
  }
}

/** The number of a Service is its node port. */
function numbered(name: string, number: number, labels: Record<string, string> = {}) {
  const plain = service(name, "172.30.0.1", labels);
  return { ...plain, spec: { ...plain.spec, ports: [{ ...plain.spec.ports[0]!, nodePort: number }] } };
}

/** Numbers of one Service over time never fall, and grow after a gap. */
function nothingResurrected(snapshots: readonly Snapshot[]): void {
  const highest = new Map<string, { number: number; gone: boolean }>();
  for (const { ipv4 } of snapshots) {
    for (const [key, known] of highest) if (!ipv4.ports.has(key)) highest.set(key, { ...known, gone: true });
    for (const { key, nodePort } of ipv4.ports.values()) {
      const known = highest.get(key) ?? { number: 0, gone: false };
      expect(nodePort).toBeGreaterThanOrEqual(known.gone ? known.number + 1 : known.number);
      highest.set(key, { number: nodePort, gone: false });
    }
  }
}

async function survive(history: readonly Step[], seed: number, encoding: EncodingName): Promise<void> {
  const figures = { ...reflectorFigures, quietMs: 60_000, initialQuietMs: 30_000 };
  const clock = fastClock(300);
  const rig = await apiRig(clock, { figures, encoding, server: { bookmarkMs: 100 } });
  try {
    for (const [i, each] of history.entries()) {
      await play(rig, each, i + 1, encoding);
      await pause(i % 4);
    }
    rig.server.faults.clear();
    // Relaxed limits, for a busy machine.
    clock.run(30);
    await vi.waitFor(() => expect(rig.seen()).toEqual(rig.truth()), { timeout: 30_000, interval: 20 });
    nothingResurrected(rig.snapshots);
  } catch (error) {
    const steps = history.map((each) => `${each.do} ${each.i} ${"on" in each ? each.on : ""}`).join("; ");
    const status = JSON.stringify(rig.source.status());
    throw new Error(`seed ${seed}: ${steps}\n${status}`, { cause: error });
  } finally {
    await rig.stop();
  }
}

it.each(encodings)(
  "%s: ends with the server's state, and no deleted object returns on the way",
  {
    timeout: 120_000,
  },
  async (encoding) => {
    const seed = Number(process.env.SEED ?? Date.now() & 0xffffff);
    const runs = Number(process.env.RUNS ?? 12);
    const histories = fc.sample(fc.array(step, { minLength: 40, maxLength: 150 }), { seed, numRuns: runs });
    for (let i = 0; i < histories.length; i += 4) {
      await Promise.all(histories.slice(i, i + 4).map((history) => survive(history, seed, encoding)));
    }
  },
);
