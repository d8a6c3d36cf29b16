// Line for line what the real kube-proxy wrote on recorded cluster states, both families.
import { describe, expect, it } from "vitest";
import { Cluster } from "../../src/manifests/cluster.ts";
import type { Kind } from "../../src/manifests/objects.ts";
import { compile } from "../../src/modes/iptables/compile.ts";
import { adopt } from "../../src/plan/iptables/adopt.ts";
import { parseSave } from "../../src/plan/iptables/parse.ts";
import { print } from "../../src/plan/iptables/print.ts";
import { route } from "../../src/routing/routes.ts";
import { nodeName } from "../places.ts";
import { readCorpus } from "../reference/corpus.ts";
import { settingsFor } from "../reference/family-settings.ts";

/** The machine that recorded the corpus had both. */
const counters = { invalidDropped: true, localhostNodePorts: true };

describe.each([
  ["ipv4", "iptables-save"],
  ["ipv6", "ip6tables-save"],
] as const)("recorded states, %s", (family, command) => {
  const states = readCorpus().map(({ seed, configuration, objects, rules }) => {
    const cluster = new Cluster(nodeName);
    for (const object of objects) cluster.upsert(object.kind as Kind, object);
    const routes = route(null, cluster.take()[family], settingsFor(configuration, objects, family));
    return { seed, plan: compile(null, routes, counters), recorded: rules[command]! };
  });

  it("10/63 our lines are kube-proxy's", () => {
    for (const { seed, plan, recorded } of states) {
      expect({ seed, lines: linesOf(print(plan)) }).toEqual({ seed, lines: linesOf(recorded) });
    }
  });

  it("10/63 taking over from kube-proxy changes nothing, so the order inside chains is right too", () => {
    for (const { seed, plan, recorded } of states) {
      expect({ seed, steps: adopt(parseSave(recorded, family), plan).steps }).toEqual({ seed, steps: [] });
    }
  });
});

/** In any order, without the built-in chains: the rest of a fresh host. */
function linesOf(text: string): string[] {
  return text
    .split("\n")
    .filter((line) => line !== "" && !/^:\S+ ACCEPT/.test(line))
    .sort();
}
