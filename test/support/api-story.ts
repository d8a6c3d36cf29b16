// A rig of the API source for tests with several steps: created by `synced` or `started`, and stopped after each test.
import { beforeEach, describe, expect, onTestFinished, vi } from "vitest";
import { jsonEncoder } from "../../playground/api/http/encoder.ts";
import type { RecordedRequest } from "../../playground/api/server.ts";
import {
  type ApiRig,
  apiRig,
  type EncodingName,
  encodings,
  node,
  service,
  serviceCIDR,
  slice,
} from "./api-rig.ts";
import { type ManualClock, manualClock } from "./manual-clock.ts";
import { frame, protobufEncoder } from "./protobuf/encode.ts";

export const patiently = { timeout: 30_000, interval: 5 };

export let rig: ApiRig;
export let clock: ManualClock;
/** Of the server in this test. */
export let encoding: EncodingName = "json";
let failuresBefore = 0;

/** Runs the tests against a server that answers in JSON, and against one that answers in protobuf. */
export function inBothEncodings(tests: () => void): void {
  describe.each(encodings)("%s", (name) => {
    beforeEach(() => {
      encoding = name;
    });
    tests();
  });
}

type RigOptions = Parameters<typeof apiRig>[1];

/** A rig in sync with a small cluster. */
export async function synced(options: RigOptions & { streaming?: boolean } = {}) {
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
  resetFailures();
}

export async function started(options: RigOptions = {}) {
  clock = manualClock();
  failuresBefore = 0;
  const started = await apiRig(clock, { random: () => 0.5, encoding, ...options });
  onTestFinished(() => started.stop());
  rig = started;
}

export const agrees = () => vi.waitFor(() => expect(rig.seen()).toEqual(rig.truth()), patiently);
/** The same, while time goes by. */
export const catchesUp = () =>
  vi.waitFor(() => {
    clock.advance(1000);
    expect(rig.seen()).toEqual(rig.truth());
  }, patiently);
export const watching = (count = 4) =>
  vi.waitFor(() => expect(rig.server.watches()).toHaveLength(count), patiently);
/** Waits until the source has the response to so many watches; `watching` until the server has the requests. */
export const opened = (count = 4) =>
  vi.waitFor(() => {
    const open = Object.values(rig.source.status().resources).filter(({ watchSince }) => watchSince !== null);
    expect(open.length).toBeGreaterThanOrEqual(count);
  }, patiently);
export const requests = (resource: string): RecordedRequest[] =>
  rig.server.seen.filter((seen) => seen.resource === resource);
export const status = () => rig.source.status().resources.Service!;

/** Waits until the source has had this many failures with Services. */
export const failed = (count: number) =>
  vi.waitFor(() => expect(status().failures - failuresBefore).toBe(count), patiently);

function resetFailures(): void {
  failuresBefore = status().failures;
}

/** Lets pending I/O happen without moving the clock. */
export const settle = (ms = 60) => new Promise((resolve) => setTimeout(resolve, ms));

const kindOf = (seen: RecordedRequest): string =>
  seen.verb === "list"
    ? "list"
    : seen.query.has("sendInitialEvents")
      ? "stream"
      : `watch ${seen.query.get("resourceVersion")}`;

export const text = (requested: readonly RecordedRequest[]) => requested.map(kindOf);

const encoder = () => (encoding === "json" ? jsonEncoder : protobufEncoder);

/** The fault that answers with this object. */
export const bodyOf = (object: object) =>
  ({ kind: "body", contentType: encoder().contentType, body: encoder().object(object)! }) as const;

/** An event that ends in the middle, although the stream continues after it. */
export function brokenEvent(): Buffer {
  const whole = encoder().event("ADDED", service("broken"));
  if (encoding === "json") return Buffer.concat([whole.subarray(0, 40), Buffer.from("\n")]);
  return frame(whole.subarray(4, 60));
}

/** An event without content. */
export const emptyEvent = () => (encoding === "json" ? Buffer.from("\n") : frame(Buffer.alloc(0)));
