// The nftables Plan in a real kernel: what is written is read back the same, lists, reloads, and follows histories.

import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { NftablesHost } from "../../src/host/nftables/host.ts";
import type { ServicePort } from "../../src/model/snapshot.ts";
import { compile } from "../../src/modes/nftables/compile.ts";
import { mostSharedSlots } from "../../src/modes/nftables/large.ts";
import { withChainsNamed } from "../../src/modes/nftables/recognised.ts";
import { walkNftables } from "../../src/modes/nftables/walk.ts";
import { countOperations, diff } from "../../src/plan/nftables/diff.ts";
import { onto, settled, unfold, unfoldChanged } from "../../src/plan/nftables/plan.ts";
import { print } from "../../src/plan/nftables/print.ts";
import type { NftPlan, NftTable } from "../../src/plan/nftables/types.ts";
import { type Routes, route } from "../../src/routing/routes.ts";
import { packet, servicePort, settings, snapshotOf } from "../clusters.ts";
import { routesFor } from "../scenario-routes.ts";
import { readScenario, scenarioNames } from "../scenarios.ts";
import { createNamespace, isRoot, type Namespace } from "./netns.ts";

/** With the second limit generated ServicePorts are large, or cross the limit in both directions. */
const limits = [mostSharedSlots, 4];
const families = ["ipv4", "ipv6"] as const;
const cases = families.flatMap((family) => limits.map((limit) => ({ family, limit })));

describe.skipIf(!isRoot).each(cases)("nftables Plan, $family, limit $limit", ({ family, limit }) => {
  const nft = family === "ipv4" ? "ip" : "ip6";
  let here: Namespace;
  let there: Namespace;
  let host: NftablesHost;

  beforeAll(async () => {
    here = createNamespace();
    there = createNamespace();
    host = await NftablesHost.open({ family: nft, netns: here.path });
  });

  afterAll(async () => {
    await host.close();
    here.remove();
    there.remove();
  });

  const state = fc.record({
    ports: fc.array(servicePort(family), { maxLength: 8 }),
    settings: settings(family),
  });

  it("is read back as it was written, and written again only where it differs", async () => {
    await fc.assert(
      fc.asyncProperty(state, async ({ ports, settings }) => {
        const want = unfold(compile(null, route(null, snapshotOf(ports, family), settings), limit));
        await host.apply(diff(await host.read(want), want));
        expect(diff(await host.read(want), want)).toEqual([]);
      }),
      { numRuns: 20 },
    );
  });

  it("walkLive reads what the whole table would show for every packet", async () => {
    const around = { localAddresses: [], podInterface: "pod0" };
    const packets = fc.array(packet(family), { minLength: 10, maxLength: 20 });
    const results = new Set<string>();
    await fc.assert(
      fc.asyncProperty(
        state,
        fc.array(servicePort(family), { maxLength: 3 }),
        packets,
        async (held, ports, sent) => {
          const tableOf = (some: readonly ServicePort[]) =>
            unfold(compile(null, route(null, snapshotOf(some, family), held.settings), limit));
          await host.apply(diff(await host.read(tableOf(held.ports)), tableOf(held.ports)));
          const part = tableOf([...held.ports.slice(0, 2), ...ports]);
          const wanted = (names: readonly string[]) => withChainsNamed(part, names, held.settings);
          const whole = await host.read(wanted([...tableOf(held.ports).chains.keys()]));
          for (const each of sent) {
            const seen = await host.walkLive(wanted, (table, onLookup) =>
              walkNftables(table, each, around, onLookup),
            );
            expect(seen).toEqual(walkNftables(whole!, each, around));
            for (const { outcome } of seen!) results.add(outcome.kind);
          }
        },
      ),
      { numRuns: 25 },
    );
    expect(results).toContain("forward");
    here.run("nft", "flush", "ruleset");
    expect(
      await host.walkLive(
        () => unfold(compile(null, route(null, snapshotOf([], family), fc.sample(settings(family), 1)[0]!))),
        () => 1,
      ),
    ).toBeNull();
  });

  it("is listed by nft like print(), as JSON too, and the listing loads to the same listing", async () => {
    await fc.assert(
      fc.asyncProperty(state, async ({ ports, settings }) => {
        const want = unfold(compile(null, route(null, snapshotOf(ports, family), settings), limit));
        here.run("nft", "flush", "ruleset");
        await host.apply(diff(null, want));
        const listing = here.run("nft", "list", "table", nft, "kube-proxy");
        expect(sorted(listing)).toEqual(sorted(print(want)));
        expect(JSON.parse(here.run("nft", "-j", "list", "ruleset"))).toHaveProperty("nftables");
        there.run("nft", "flush", "ruleset");
        there.feed(listing, "nft", "-f", "-");
        expect(sorted(there.run("nft", "list", "table", nft, "kube-proxy"))).toEqual(sorted(listing));
      }),
      { numRuns: 8 },
    );
  });

  it("lists in every scenario, and the listing loads to the same listing", async () => {
    let listed = 0;
    for (const scenario of scenarioNames().map(readScenario)) {
      const routes = routesFor(scenario.objects, scenario.settings, "nftables", family);
      const want = unfold(compile(null, routes, limit));
      // Most scenarios are the same with every limit: once is enough.
      if (limit !== mostSharedSlots && print(want) === print(unfold(compile(null, routes)))) continue;
      listed++;
      here.run("nft", "flush", "ruleset");
      await host.apply(diff(null, want));
      const listing = here.run("nft", "list", "ruleset");
      expect([scenario.name, ...sorted(listing)]).toEqual([scenario.name, ...sorted(print(want))]);
      expect(JSON.parse(here.run("nft", "-j", "list", "ruleset"))).toHaveProperty("nftables");
      there.feed(`flush ruleset\n${listing}`, "nft", "-f", "-");
      const again = there.run("nft", "list", "ruleset");
      expect([scenario.name, ...sorted(again)]).toEqual([scenario.name, ...sorted(listing)]);
    }
    expect(listed).toBeGreaterThan(0);
  });

  const history = fc.record({
    settings: settings(family),
    steps: fc.array(fc.array(fc.tuple(servicePort(family), fc.boolean()), { minLength: 1, maxLength: 3 }), {
      minLength: 2,
      maxLength: 5,
    }),
  });

  it("follows generated histories: after every step the kernel holds the Plan, and the Plan from scratch", async () => {
    await fc.assert(
      fc.asyncProperty(history, async ({ settings, steps }) => {
        const ports = new Map<string, ServicePort>();
        let routes: Routes | null = null;
        let want: NftPlan | null = null;
        let applied: NftPlan | null = null;
        for (const step of steps) {
          for (const [port, remove] of step) {
            if (remove) ports.delete(port.key);
            else ports.set(port.key, port);
          }
          const snapshot = snapshotOf(
            [...ports.values()],
            family,
            step.map(([{ key }]) => key),
          );
          routes = route(routes, snapshot, settings);
          want = compile(want, routes, limit);
          const whole = unfold(want);
          const tables: { have: NftTable | null; want: NftTable } =
            applied === null
              ? { have: await host.read(whole), want: whole }
              : unfoldChanged(applied, want, want.changed);
          await host.apply(diff(tables.have, tables.want));
          applied =
            applied === null
              ? settled(want, want.fragments.keys(), tables.have)
              : settled(onto(applied, want, want.changed), want.changed, tables.have);
          const held = await host.read(whole);
          expect(countOperations(diff(held, unfold(applied)))).toBe(0);
          expect(diff(held, unfold(compile(null, route(null, snapshot, settings), limit)))).toEqual([]);
        }
      }),
      { numRuns: Number(process.env.TURNOUT_HISTORIES ?? 30) },
    );
  });
});

/** Lines of a listing without order, line breaks and indentation. */
function sorted(listing: string): string[] {
  return listing
    .replace(/elements = \{ ([^}]*) \}/g, (_, elements: string) => elements.split(/,\s*/).join("\n"))
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "")
    .sort();
}
