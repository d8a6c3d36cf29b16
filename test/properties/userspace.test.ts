// Properties of the userspace mode on generated clusters: rules and relays agree with decideRelayed(), and small steps lead
// where one big step does.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { applyInMemory, freshTables } from "../../src/host/iptables/memory.ts";
import type { ServicePort } from "../../src/model/snapshot.ts";
import { rulesetOf } from "../../src/modes/iptables/walk.ts";
import { compile } from "../../src/modes/userspace/compile.ts";
import { socketsIn, wantedRelays } from "../../src/modes/userspace/relays.ts";
import { walkRelayed } from "../../src/modes/userspace/walk.ts";
import { adopt } from "../../src/plan/iptables/adopt.ts";
import { diff } from "../../src/plan/iptables/diff.ts";
import type { HostTables, IptablesPlan } from "../../src/plan/iptables/types.ts";
import type { Packet } from "../../src/routing/decide.ts";
import { type Routes, route } from "../../src/routing/routes.ts";
import { snapshotOf } from "../clusters.ts";
import { change, expectDecidedResults, generatedHistory, type WalkedMode } from "./common.ts";

const walked = {
  mode: "userspace",
  walker: (routes: Routes) => {
    const relays = wantedRelays(routes);
    const rules = rulesetOf(compile(null, routes, { bind: null, socketsOf: socketsIn(relays) }));
    return (packet: Packet, around: Parameters<typeof walkRelayed>[3]) =>
      walkRelayed(rules, relays, packet, around, routes.settings);
  },
} satisfies WalkedMode;

/** The same port for a ServicePort in every step, as relays that stay open have it. */
const relaying = {
  bind: null,
  socketsOf: (key: string) => {
    const first = 10_000 + Buffer.from(key).reduce((sum, byte) => (sum * 31 + byte) % 9000, 0) * 4;
    const relayPorts = (["cluster", "local", "external", "guarded"] as const).map(
      (policy, i) => [policy, first + i] as const,
    );
    return { relayPorts: new Map(relayPorts), taken: new Set<string>() };
  },
};

describe.each(["ipv4", "ipv6"] as const)("userspace mode, %s", (family) => {
  it("gives every packet the result of decideRelayed()", () => expectDecidedResults(family, walked, 300));

  it("reaches step by step what it builds from scratch, and the host with it", () => {
    const property = fc.property(generatedHistory(family), ({ settings, steps }) => {
      const ports = new Map<string, ServicePort>();
      let routes: Routes | null = null;
      let applied: IptablesPlan | null = null;
      let host: HostTables = freshTables(family);
      for (const { changes, setting } of steps) {
        const changed = change(ports, changes);
        const snapshot = snapshotOf([...ports.values()], family, changed);
        routes = route(routes, snapshot, settings[setting]!);
        const want = compile(applied, routes, relaying);
        const patch = applied === null ? adopt(host, want) : diff(applied, want, want.changed);
        host = applyInMemory(host, patch);
        applied = want;
        const scratch = compile(null, route(null, snapshot, settings[setting]!), relaying);
        expect(adopt(host, scratch).steps).toEqual([]);
      }
    });
    fc.assert(property, { numRuns: 100 });
  });
});
