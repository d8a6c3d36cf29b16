// Properties of the ipvs mode on generated clusters: small steps lead where one big step does, and nothing is done twice.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { FamilySettings } from "../../src/config/resolve/settings.ts";
import { MemoryIpvsHost } from "../../src/host/ipvs/memory.ts";
import type { ServicePort } from "../../src/model/snapshot.ts";
import { compile, type IpvsOptions } from "../../src/modes/ipvs/compile.ts";
import { viewOfPlan, walkIpvs } from "../../src/modes/ipvs/walk.ts";
import { adopt } from "../../src/plan/ipvs/adopt.ts";
import { type Change, diff } from "../../src/plan/ipvs/diff.ts";
import type { Draining } from "../../src/plan/ipvs/drain.ts";
import { serverKey } from "../../src/plan/ipvs/names.ts";
import { print } from "../../src/plan/ipvs/print.ts";
import type { IpvsPlan } from "../../src/plan/ipvs/types.ts";
import type { Packet } from "../../src/routing/decide.ts";
import { type Routes, route } from "../../src/routing/routes.ts";
import { servicePort, settings, snapshotOf } from "../clusters.ts";
import { change, expectDecidedResults, generatedHistory, type WalkedMode } from "./common.ts";

const options: IpvsOptions = { scheduler: "rr", excludeCIDRs: [] };

const walked = {
  mode: "ipvs",
  walker: (routes: Routes) => {
    const view = viewOfPlan(compile(null, routes, options));
    return (packet: Packet, around: Parameters<typeof walkIpvs>[2]) => walkIpvs(view, packet, around);
  },
} satisfies WalkedMode;

describe.each(["ipv4", "ipv6"] as const)("ipvs mode, %s", (family) => {
  it("gives every packet the result of decideServed()", () => expectDecidedResults(family, walked, 150));

  it("reaches step by step what it builds from scratch, and the host with it", async () => {
    await fc.assert(
      fc.asyncProperty(generatedHistory(family), async ({ settings, steps }) => {
        const walk = new Walk(family, settings);
        for (const { changes, setting } of steps) {
          const { want, scratch } = walk.step(changes, setting);
          expect(print(want)).toBe(print(scratch));
          expect(new Map([...want.sizes].filter(([, size]) => size > 0))).toEqual(scratch.sizes);

          await walk.reach(want);
          const left = adopt(await walk.host.read(), scratch);
          expect([left.patch.grow, left.patch.shrink]).toEqual([[], []]);
          expect(new Set(left.draining.keys())).toEqual(new Set(walk.draining.keys()));
          const again = diff(want, scratch, scratch.fragments.keys(), walk.draining);
          expect([again.patch.grow, again.patch.shrink]).toEqual([[], []]);
        }
      }),
      { numRuns: 80 },
    );
  });

  it("gets from any state to any other, and connections of TCP endpoints that return are kept", async () => {
    const cluster = fc.array(servicePort(family), { maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(settings(family), cluster, cluster, async (setting, before, after) => {
        const walk = new Walk(family, [setting]);
        const first = walk.step(
          before.map((port) => [port, false] as const),
          0,
        ).want;
        await walk.reach(first);
        const held = [...first.servers.values()].flatMap(([claim]) =>
          [...claim!.server.destinations.keys()].map((key) => ({ server: claim!.server, key })),
        );
        for (const { server, key } of held) walk.host.count(server, key, 1);
        await walk.reach(
          walk.step(
            after.map((port) => [port, false] as const),
            0,
          ).want,
        );
        const back = [...before.map((port) => [port, false] as const)];
        const gone = after.filter(({ key }) => !before.some((port) => port.key === key));
        await walk.reach(walk.step([...gone.map((port) => [port, true] as const), ...back], 0).want);
        const { servers } = await walk.host.read();
        const survived = walk.deleted;
        for (const { server, key } of held) {
          if (server.protocol !== "tcp" || survived.has(serverKey(server))) continue;
          expect(servers.get(serverKey(server))!.destinations.get(key)).toMatchObject({
            weight: 1,
            active: 1,
          });
        }
      }),
      { numRuns: 100 },
    );
  });
});

/** One history on one host in memory. */
class Walk {
  readonly host: MemoryIpvsHost;
  draining: Draining = new Map();
  /** Virtual servers that were ever deleted, and their connections with them. */
  readonly deleted = new Set<string>();
  readonly #family: "ipv4" | "ipv6";
  readonly #settings: readonly FamilySettings[];
  readonly #ports = new Map<string, ServicePort>();
  #routes: Routes | null = null;
  #want: IpvsPlan | null = null;
  #applied: IpvsPlan | null = null;

  constructor(family: "ipv4" | "ipv6", settings: readonly FamilySettings[]) {
    this.host = new MemoryIpvsHost(family);
    this.#family = family;
    this.#settings = settings;
  }

  step(
    changes: readonly (readonly [ServicePort, boolean])[],
    setting: number,
  ): { readonly want: IpvsPlan; readonly scratch: IpvsPlan } {
    const changed = change(this.#ports, changes);
    const snapshot = snapshotOf([...this.#ports.values()], this.#family, changed);
    const settings = this.#settings[setting]!;
    this.#routes = route(this.#routes, snapshot, settings);
    this.#want = compile(this.#want, this.#routes, options);
    return { want: this.#want, scratch: compile(null, route(null, snapshot, settings), options) };
  }

  async reach(want: IpvsPlan): Promise<void> {
    const change: Change =
      this.#applied === null
        ? adopt(await this.host.read(), want)
        : diff(this.#applied, want, want.changed, this.draining);
    for (const operations of [change.patch.grow, change.patch.shrink]) {
      const { failures } = await this.host.apply(operations);
      if (failures.length > 0) throw new Error(`refused: ${JSON.stringify(failures)}`);
      for (const each of operations)
        if (each.kind === "delete server") this.deleted.add(serverKey(each.server));
    }
    this.draining = change.draining;
    this.#applied = want;
  }
}
