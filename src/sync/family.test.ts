// What a family finds out on the way to the host, whatever the host says in the end.
import { expect, it } from "vitest";
import { ipv4Settings, servicePort } from "../../test/support/routed.ts";
import { HostError } from "../host/error.ts";
import { keyed } from "../model/keyed.ts";
import type { ServicePort } from "../model/snapshot.ts";
import type { Driver } from "./driver.ts";
import { FamilySync } from "./family.ts";

const never = new AbortController().signal;
const web = servicePort("shop/web", { clusterIP: "172.30.0.1" });
const thief = servicePort("shop/a-thief", { clusterIP: "172.30.0.2", externalIPs: ["172.30.0.1"] });
const other = servicePort("shop/other", { clusterIP: "172.30.0.3" });

it("conflicts are known after a Sync, whatever became of it, and gone when one of the two is", async () => {
  const { turn, objects } = setUp();
  expect(objects()).toEqual([]);
  await turn([web, thief], [web, thief]);
  expect(objects()).toEqual(["Service shop/a-thief"]);
  await turn([thief], [web]);
  expect(objects()).toEqual([]);
});

it("the list stays the very same while other Services change", async () => {
  const { turn, sync } = setUp();
  await turn([web, thief], [web, thief]);
  const before = sync.conflicts;
  await turn([web, thief, other], [other]);
  expect(sync.conflicts).toBe(before);
});

it("a record tells the rules that were to be written, also when the host refused them", async () => {
  const { turn } = setUp();
  expect(await turn([web], [web])).toMatchObject({ outcome: { kind: "failed" }, rules });
});

const rules = [{ table: "nat", held: 12, written: 3 }];

function setUp() {
  const refuse = () => Promise.reject(new HostError("unavailable", "nobody is there"));
  const driver: Driver = {
    rules,
    sync: refuse,
    verify: refuse,
    watch: async () => {},
    close: async () => {},
  };
  const sync = new FamilySync("ipv4", driver, () => 0);
  const serviceCIDRs: readonly string[] = [];
  const turn = (all: readonly ServicePort[], changed: readonly ServicePort[]) => {
    const ports = keyed(all.map((port) => [port.key, port]));
    const keys = new Set(changed.map(({ key }) => key));
    return sync.turn({ ports, changed: keys, serviceCIDRs }, ipv4Settings, "change", never);
  };
  return { sync, turn, objects: () => sync.conflicts.map(({ object }) => object) };
}
