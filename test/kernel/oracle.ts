// Checks a mode by real packets: scenarios with equal settings share one cluster, and all their packets are sent in parallel.
import type { KubeObject } from "../cluster.ts";
import {
  casesFor,
  type ModeName,
  type PacketCase,
  readScenario,
  type Scenario,
  type ScenarioSettings,
  scenarioNames,
} from "../scenarios.ts";
import { check } from "./probe.ts";
import type { World } from "./world.ts";

/** Something that programmes a node so that Services work; the real kube-proxy, or a mode of ours. */
export type ModeUnderTest = {
  readonly name: ModeName;
  /** Makes the node serve exactly these objects under these settings; resolves when it does. */
  apply(world: World, objects: readonly KubeObject[], settings: ScenarioSettings): Promise<void>;
  /** Stops whatever `apply` left running. The rules are swept away by the caller. */
  clear(world: World): Promise<void>;
};

/** Scenarios that can be checked in one go. */
export type Group = { readonly settings: ScenarioSettings; readonly scenarios: readonly Scenario[] };

export type Verdict = { readonly packet: PacketCase; readonly problem: string | null };

/** All scenarios that apply to a program in a mode, grouped. */
export function groupsFor(
  mode: ModeName,
  program: "turnout" | "kube-proxy",
  leavesOut: (packet: PacketCase) => boolean = () => false,
): Group[] {
  const groups = new Map<string, Scenario[]>();
  for (const scenario of scenarioNames().map(readScenario)) {
    const packets = casesFor(scenario.packets, mode, program).filter((packet) => !leavesOut(packet));
    if (packets.length === 0) continue;
    const key = JSON.stringify([scenario.settings, scenario.objects.filter(({ kind }) => kind === "Node")]);
    groups.set(key, [...(groups.get(key) ?? []), { ...scenario, packets }]);
  }
  return [...groups.values()].map((scenarios) => ({ settings: scenarios[0]!.settings, scenarios }));
}

/** Checks every packet of a group, this many in parallel. */
export async function checkGroup(
  world: World,
  mode: ModeUnderTest,
  { settings, scenarios }: Group,
  atOnce = Number.POSITIVE_INFINITY,
): Promise<Verdict[]> {
  world.sweep();
  world.setForwardPolicy(settings.forwardPolicy);
  try {
    await mode.apply(world, merged(scenarios), settings);
    world.forgetFlows();
    const waiting = scenarios.flatMap(({ packets }) => packets);
    const verdicts: Verdict[] = [];
    while (waiting.length > 0) {
      const batch = waiting.splice(0, atOnce);
      const checked = batch.map(async (packet) => ({
        packet,
        problem: await check(world, packet, packet.outcome),
      }));
      verdicts.push(...(await Promise.all(checked)));
    }
    return verdicts;
  } finally {
    await mode.clear(world);
    world.sweep();
  }
}

/** The objects of several scenarios in one cluster. */
function merged(scenarios: readonly Scenario[]): KubeObject[] {
  const byName = new Map(
    scenarios
      .flatMap(({ objects }) => objects)
      .map((object) => [`${object.kind}/${object.metadata.namespace ?? ""}/${object.metadata.name}`, object]),
  );
  return [...byName.values()];
}
