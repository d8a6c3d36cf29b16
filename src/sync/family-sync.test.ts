// What a family records on the way to the host, whether the host accepts it or not.
import { expect, it } from "vitest";
import { endpoint, ipv4Settings, servicePort } from "../../test/support/routed.ts";
import { HostError } from "../host/error.ts";
import { keyed } from "../model/keyed.ts";
import type { ServicePort } from "../model/snapshot.ts";
import { type Driver, emptyReport, noProblems, type Verified } from "../modes/driver.ts";
import { FamilySync } from "./family-sync.ts";

const never = new AbortController().signal;
const web = servicePort("shop/web", { clusterIP: "172.30.0.1" });
const thief = servicePort("shop/a-thief", { clusterIP: "172.30.0.2", externalIPs: ["172.30.0.1"] });
const other = servicePort("shop/other", { clusterIP: "172.30.0.3" });

it("conflicts are listed after a Sync, whatever its outcome, until one of the two Services is removed", async () => {
  const { turn, objects } = setUp();
  expect(objects()).toEqual([]);
  await turn([web, thief], [web, thief]);
  expect(objects()).toEqual(["Service shop/a-thief"]);
  await turn([thief], [web]);
  expect(objects()).toEqual([]);
});

it("the list keeps its identity while other Services, or endpoints of these, change", async () => {
  const { turn, sync } = setUp();
  await turn([web, thief], [web, thief]);
  const before = sync.conflicts;
  await turn([web, thief, other], [other]);
  expect(sync.conflicts).toBe(before);
  const moved = { ...thief, endpoints: [endpoint("10.180.0.1:80")] };
  await turn([web, moved, other], [moved]);
  expect(sync.conflicts).toBe(before);
  const honest = { ...thief, externalIPs: [] };
  await turn([web, honest, other], [honest]);
  expect(sync.conflicts).toEqual([]);
});

it("a record counts the rules to write, also when the host refused them", async () => {
  const { turn } = setUp();
  expect(await turn([web], [web])).toMatchObject({ outcome: { kind: "failed" }, rules });
});

it("a record includes the time and the writes of the verification before it", async () => {
  const repair = { operations: 7, bytes: 300, rules: [{ table: "nat", held: 12, written: 5 }] };
  const { sync, turn } = setUp({ differences: 7, repair });
  await sync.verify("drift", never);
  const record = await turn([web], [web]);
  expect(record).toMatchObject({ readBack: true, operations: 9, bytes: 320, startedAt: 1, finishedAt: 2 });
  expect(record.rules).toEqual([{ table: "nat", held: 12, written: 8 }]);
  expect(await turn([web], [])).toMatchObject({
    readBack: false,
    operations: 2,
    bytes: 20,
    startedAt: 3,
    rules,
  });
});

it("a Sync after a failed verification is no success, unless it reads the host itself", async () => {
  const { sync, turn, refuse, relent, readsBack } = setUp({ differences: 0 });
  const afterFailedVerify = async () => {
    refuse();
    await sync.verify("drift", never);
    relent();
    return turn([web], []);
  };
  const failed = { kind: "failed", message: "the host is unavailable" };
  expect(await afterFailedVerify()).toMatchObject({ outcome: failed, readBack: false, operations: 2 });
  expect(sync.incomplete).toBe(true);
  expect(await turn([web], [])).toMatchObject({ outcome: { kind: "ok" } });
  readsBack();
  expect(await afterFailedVerify()).toMatchObject({ outcome: { kind: "ok" }, readBack: true });
});

it("repairs are reported even though the Sync after them failed", async () => {
  const { sync, turn, refuse } = setUp({ differences: 1, repair: { operations: 1, bytes: 10 } });
  await sync.verify("resync", never);
  refuse();
  expect(await turn([web], [web])).toMatchObject({ outcome: { kind: "failed" }, operations: 1, bytes: 10 });
});

const rules = [{ table: "nat", held: 12, written: 3 }];

/** A host that takes two operations a turn and finds this when it is read; null: it refuses. */
function setUp(found: Verified | null = null) {
  let isRefusing = found === null;
  const taken = <T>(answer: T) =>
    isRefusing
      ? Promise.reject(new HostError("unavailable", "the host is unavailable"))
      : Promise.resolve(answer);
  const driver: Driver = {
    sync: () => taken({ readBack, operations: 2, bytes: 20, refused: [] }),
    verify: () => taken(found!),
    watch: async () => {},
    unserved: () => noProblems,
    report: () => ({ ...emptyReport, rules }),
    close: async () => {},
  };
  let now = 0;
  const sync = new FamilySync("ipv4", driver, () => ++now);
  let readBack = false;
  const refuse = () => {
    isRefusing = true;
  };
  const relent = () => {
    isRefusing = false;
  };
  const readsBack = () => {
    readBack = true;
  };
  const serviceCIDRs: readonly string[] = [];
  const turn = (all: readonly ServicePort[], changed: readonly ServicePort[]) => {
    const ports = keyed(all.map((port) => [port.key, port]));
    const keys = new Set(changed.map(({ key }) => key));
    return sync.run({ ports, changed: keys, serviceCIDRs }, ipv4Settings, "change", never);
  };
  return { sync, turn, refuse, relent, readsBack, objects: () => sync.conflicts.map(({ object }) => object) };
}
