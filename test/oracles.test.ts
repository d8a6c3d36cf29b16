// The oracles that need no kernel: decide() and the walk through each Plan must agree with the truth tables.
import { describe, expect, it } from "vitest";
import { type Trace, trace, traceOf } from "../src/explain/trace.ts";
import { families, isLoopback } from "../src/model/address.ts";
import { endpointKey } from "../src/model/snapshot.ts";
import { modes } from "../src/modes/index.ts";
import { compile as compileIptables } from "../src/modes/iptables/compile.ts";
import { rulesetOf, walkIptables } from "../src/modes/iptables/walk.ts";
import { compile as compileIpvs } from "../src/modes/ipvs/compile.ts";
import { decideServed } from "../src/modes/ipvs/decide.ts";
import { viewOfPlan, walkIpvs } from "../src/modes/ipvs/walk.ts";
import { compile as compileNftables } from "../src/modes/nftables/compile.ts";
import { walkNftables } from "../src/modes/nftables/walk.ts";
import { compile as compileUserspace } from "../src/modes/userspace/compile.ts";
import { decideRelayed, type RelayedOutcome } from "../src/modes/userspace/decide.ts";
import { socketsIn, wantedRelays } from "../src/modes/userspace/relays.ts";
import { walkRelayed } from "../src/modes/userspace/walk.ts";
import { unfold } from "../src/plan/nftables/plan.ts";
import type { Packet } from "../src/routing/decide.ts";
import type { Routes } from "../src/routing/routes.ts";
import { interfaceOf, placeOf, podInterfacePrefix } from "./places.ts";
import { routesFor } from "./scenario-routes.ts";
import {
  casesFor,
  caseText,
  type ExpectedOutcome,
  type ModeName,
  type PacketCase,
  readScenario,
  type Scenario,
  scenarioNames,
} from "./scenarios.ts";

const scenarios = scenarioNames()
  .map(readScenario)
  // What a foreign firewall does is not decided here.
  .filter(({ settings }) => settings.forwardPolicy === "ACCEPT");

describe.each(["nftables", "iptables"] as const)("decide() and explain in %s mode", (mode) => {
  it.each(titled(mode))("$title", ({ scenario, packets }) => {
    for (const family of families) {
      const routes = routesFor(scenario.objects, scenario.settings, mode, family);
      const decided = packets
        .filter((packet) => packet.family === family)
        .map((packet) => [
          caseText(packet),
          outcomeText(packet.outcome),
          decisionText(modes[mode].decide(routes, toPacket(packet)).outcome),
          traceText(trace(modes[mode], routes, toPacket(packet))),
        ]);
      expect(
        decided.filter(([, expected, actual, traced]) => expected !== actual || expected !== traced),
      ).toEqual([]);
    }
  });
});

describe("decideRelayed() in userspace mode", () => {
  it.each(titled("userspace"))("$title", ({ scenario, packets }) => {
    for (const family of families) {
      const routes = routesFor(scenario.objects, scenario.settings, "userspace", family);
      const decided = packets
        .filter((packet) => packet.family === family)
        .map((packet) => {
          const { outcome } = decideRelayed(routes, toPacket(packet));
          const actual = outcome.kind === "close" ? "close" : decisionText(outcome);
          return [caseText(packet), outcomeText(packet.outcome), actual];
        });
      expect(decided.filter(([, expected, actual]) => expected !== actual)).toEqual([]);
    }
  });
});

describe("decideServed() in ipvs mode", () => {
  it.each(titled("ipvs"))("$title", ({ scenario, packets }) => {
    for (const family of families) {
      const routes = routesFor(scenario.objects, scenario.settings, "ipvs", family);
      const decided = packets
        .filter((packet) => packet.family === family)
        .map((packet) => {
          const decision = decideServed(routes, toPacket(packet));
          const traced = traceText(traceOf(decision, routes, toPacket(packet)));
          return [caseText(packet), outcomeText(packet.outcome), decisionText(decision.outcome), traced];
        });
      expect(
        decided.filter(([, expected, actual, traced]) => expected !== actual || expected !== traced),
      ).toEqual([]);
    }
  });
});

describe("the ipvs Plan", () => {
  it.each(titled("ipvs"))("$title", ({ scenario, packets }) => {
    for (const family of families) {
      const routes = routesFor(scenario.objects, scenario.settings, "ipvs", family);
      const view = viewOfPlan(compileIpvs(null, routes, { scheduler: "", excludeCIDRs: [] }));
      const around = aroundNode(routes);
      const checked = packets.filter((packet) => packet.family === family);
      expect(contradictions(checked, (packet) => walkIpvs(view, packet, around))).toEqual([]);
    }
  });
});

describe("the nftables Plan", () => {
  it.each(titled("nftables"))("$title", ({ scenario, packets }) => {
    for (const family of families) {
      const routes = routesFor(scenario.objects, scenario.settings, "nftables", family);
      const table = unfold(compileNftables(null, routes));
      const around = aroundNode(routes);
      // NodePorts on loopback are served by a proxy of ours, not by rules.
      const checked = packets.filter((packet) => packet.family === family && !isServedByListener(packet));
      expect(contradictions(checked, (packet) => walkNftables(table, packet, around))).toEqual([]);
    }
  });
});

describe("the iptables Plan", () => {
  it.each(titled("iptables"))("$title", ({ scenario, packets }) => {
    for (const family of families) {
      const routes = routesFor(scenario.objects, scenario.settings, "iptables", family);
      const counters = { invalidDropped: true, localhostNodePorts: true };
      const rules = rulesetOf(compileIptables(null, routes, counters));
      const around = aroundNode(routes);
      const checked = packets.filter((packet) => packet.family === family);
      expect(contradictions(checked, (packet) => walkIptables(rules, packet, around))).toEqual([]);
    }
  });
});

describe("the userspace Plan and its relays", () => {
  it.each(titled("userspace"))("$title", ({ scenario, packets }) => {
    for (const family of families) {
      const routes = routesFor(scenario.objects, scenario.settings, "userspace", family);
      const relays = wantedRelays(routes);
      const rules = rulesetOf(compileUserspace(null, routes, { bind: null, socketsOf: socketsIn(relays) }));
      const around = aroundNode(routes);
      const walk = (packet: Packet) => walkRelayed(rules, relays, packet, around, routes.settings);
      const checked = packets.filter((packet) => packet.family === family);
      expect(contradictions(checked, walk)).toEqual([]);
    }
  });
});

function titled(mode: ModeName): { title: string; scenario: Scenario; packets: PacketCase[] }[] {
  return scenarios.flatMap((scenario) => {
    const packets = casesFor(scenario.packets, mode, "turnout")
      // The kernel, not the proxy, drops packets to loopback from outside.
      .filter(({ from, to }) => !(from.kind === "outside" && isLoopback(to.address)));
    const rows = [...new Set(packets.flatMap(({ rows }) => rows))].join(" ");
    return packets.length === 0 ? [] : [{ title: `${scenario.name} (${rows})`, scenario, packets }];
  });
}

function isServedByListener({ to, outcome }: PacketCase): boolean {
  return isLoopback(to.address) && outcome.kind === "forward";
}

function toPacket({ from, to }: PacketCase): Packet {
  const place = placeOf(from.address)!;
  const isLocalPod = interfaceOf(place).startsWith(podInterfacePrefix);
  const origin = place === "host" ? "node" : isLocalPod ? "pod" : "elsewhere";
  return { from: { origin, address: from.address }, to };
}

function outcomeText(outcome: ExpectedOutcome): string {
  if (outcome.kind !== "forward") return outcome.kind;
  return choicesText(outcome.choices.map(({ endpoint, masquerade }) => ({ endpoint, masquerade })));
}

function decisionText(outcome: RelayedOutcome): string {
  if (outcome.kind !== "forward") return outcome.kind;
  return choicesText(
    outcome.choices.map(({ endpoint, masquerade }) => ({ endpoint: endpointKey(endpoint), masquerade })),
  );
}

function traceText({ outcome, candidates }: Trace): string {
  return outcome === "forward" ? choicesText(candidates) : outcome;
}

type Walked = ReturnType<typeof walkNftables | typeof walkRelayed>[number]["outcome"];

/** Where a walk through a Plan differs from the truth table: the packet, the expected result, the actual one. */
function contradictions(
  packets: readonly PacketCase[],
  walk: (packet: Packet) => readonly { readonly outcome: Walked }[],
): string[][] {
  return packets
    .map((packet) => {
      const walks = walk(toPacket(packet)).map(({ outcome }) => outcome);
      return [caseText(packet), outcomeText(packet.outcome), walksText(walks)];
    })
    .filter(([, expected, actual]) => expected !== actual);
}

function aroundNode({ settings }: Routes) {
  return { localAddresses: settings.localAddresses, podInterface: `${podInterfacePrefix}0` };
}

function walksText(walks: readonly Walked[]): string {
  const forwards = walks.filter((outcome) => outcome.kind === "forward");
  if (forwards.length < walks.length) return [...new Set(walks.map(({ kind }) => kind))].join(" or ");
  return choicesText(
    forwards.map(({ backend, masquerade }) => ({ endpoint: endpointKey(backend), masquerade })),
  );
}

function choicesText(choices: readonly { endpoint: string; masquerade: boolean }[]): string {
  return choices
    .map(({ endpoint, masquerade }) => `${endpoint}${masquerade ? " masquerade" : ""}`)
    .sort()
    .join(", ");
}
