// Beside the real kube-proxy: the same tables for generated clusters, and a switch-over without interruption.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { families } from "../../src/model/address.ts";
import { openIptables } from "../../src/modes/iptables/host/driver.ts";
import { type Routes, route } from "../../src/routing/routes.ts";
import { findAssets } from "../assets.ts";
import { nodeName } from "../places.ts";
import { generateCase } from "../reference/cases.ts";
import { settingsFor } from "../reference/family-settings.ts";
import { recordRules } from "../reference/record.ts";
import { routesFor, snapshotOf } from "../scenario-routes.ts";
import { readScenario } from "../scenarios.ts";
import { manualClock } from "../support/manual-clock.ts";
import { openConversation } from "./conversation.ts";
import { createNamespace, type Namespace, reasonToSkip } from "./netns.ts";
import { kubeProxyProgram } from "./program.ts";
import { createWorld, type World } from "./world.ts";

const assets = findAssets("kube-proxy");
const reason = assets.found ? reasonToSkip() : assets.reason;
const program = assets.found ? assets.paths["kube-proxy"] : "";
/** Recorded states come from seeds up to 80; these are others. */
const firstSeed = 2001;
const states = Number(process.env.TURNOUT_STATES ?? 10);
const never = new AbortController().signal;

describe("iptables mode beside the real kube-proxy", () => {
  beforeEach(({ skip }) => skip(reason !== null, reason ?? ""));

  it(`10/60 10/63 writes the same lines for ${states} generated clusters, dual-stack`, {
    timeout: 20_000 * states,
  }, async () => {
    for (let seed = firstSeed; seed < firstSeed + states; seed++) {
      const { configuration, objects } = generateCase(seed, "iptables");
      const theirs = await recordRules(program, configuration, nodeName, objects);
      const snapshot = snapshotOf(objects);
      const here = createNamespace(`seed${seed}`);
      try {
        for (const family of families) {
          const routes = route(null, snapshot[family], settingsFor(configuration, objects, family));
          await syncOnce(here, family, routes);
          const command = family === "ipv4" ? "iptables-save" : "ip6tables-save";
          expect({ seed, lines: linesOf(here.run(command)) }).toEqual({
            seed,
            lines: linesOf(theirs[command]!),
          });
        }
      } finally {
        here.remove();
      }
    }
  });

  describe("taking over", () => {
    let world: World;
    beforeAll(async () => {
      if (reason === null) world = await createWorld();
    });
    afterAll(() => world?.close());

    it.each(["cluster-ip", "load-balancer", "affinity"])(
      "changes nothing, there and back, and connections live on: %s",
      async (name) => {
        const { objects, settings } = readScenario(name);
        const theirs = kubeProxyProgram(program, "iptables");
        world.sweep();
        await theirs.apply(world, objects, settings);
        const frontend = [...snapshotOf(objects).ipv4.ports.values()].find(
          ({ protocol, endpoints, clusterIP }) =>
            protocol === "tcp" && endpoints.length > 0 && clusterIP !== "",
        )!;
        const talkers = (["L2", "X"] as const).map((place) =>
          openConversation({ netns: world.at[place], poller: world.poller, source: null }, "tcp", {
            address: frontend.clusterIP,
            port: frontend.port,
          }),
        );
        const talk = () => Promise.all(talkers.map((talker) => talker.talk()));
        const partners = await talk();
        expect(partners).not.toContain("silence");
        const before = listing(world.node);
        await theirs.clear(world);

        for (const family of families) {
          const applied = await syncOnce(
            world.node,
            family,
            routesFor(objects, settings, "iptables", family),
          );
          expect({ family, ...applied }).toMatchObject({ family, readBack: true, operations: 0, bytes: 0 });
        }
        expect(listing(world.node)).toEqual(before);
        expect(await talk()).toEqual(partners);

        await theirs.apply(world, objects, settings);
        expect(sorted(listing(world.node))).toEqual(sorted(before));
        expect(await talk()).toEqual(partners);
        await theirs.clear(world);
        for (const talker of talkers) talker.close();
      },
    );
  });
});

async function syncOnce(here: Namespace, family: "ipv4" | "ipv6", routes: Routes) {
  const driver = await openIptables({
    family,
    clock: manualClock(),
    canaryPeriodMs: () => 30_000,
    netns: here.path,
  });
  const applied = await driver.sync(routes, never);
  await driver.close();
  return applied;
}

/** In any order, without counters and times. */
function linesOf(text: string): string[] {
  return text
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => line.replace(/ \[\d+:\d+\]$/, ""))
    .sort();
}

function listing(netns: Namespace): string[] {
  return ["iptables-save", "ip6tables-save"].flatMap((command) =>
    netns
      .run(command)
      .split("\n")
      .filter((line) => !line.startsWith("#"))
      .map((line) => line.replace(/ \[\d+:\d+\]$/, "")),
  );
}

function sorted(lines: readonly string[]): string[] {
  return lines.toSorted();
}
