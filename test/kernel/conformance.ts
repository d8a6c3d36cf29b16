// All scenarios, packets and stories, as tests of one program in one mode.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ModeName, type PacketCase, readScenario, type Scenario, scenarioNames } from "../scenarios.ts";
import { readStories, type Story } from "../stories.ts";
import { checkGroup, type Group, groupsFor, type ModeUnderTest, type Verdict } from "./oracle.ts";
import { type ProgramUnderTest, play } from "./story.ts";
import { type BackEnd, createWorld, type World } from "./world.ts";

export type Candidate = {
  readonly title: string;
  readonly program: "turnout" | "kube-proxy";
  readonly mode: ModeUnderTest;
  /** Of the packet-filter tables, for whatever else is on the node. */
  readonly backEnd?: BackEnd;
  /** null: it can be checked here; otherwise the reason why not. */
  readonly reasonToSkip: string | null;
  /** Cases that this candidate has no part in, such as what a daemon adds to a Plan. */
  readonly leavesOut?: (packet: PacketCase) => boolean;
  /** Which of the groups and stories; all by default. */
  readonly takes?: (of: Group | { readonly story: string }) => boolean;
  /** How many packets are sent in parallel; all, unless the machine is slow. */
  readonly atOnce?: number;
};

/** All scenarios of one mode as tests. */
export function describeConformance(candidate: Candidate): void {
  describe(`${candidate.title}`, () => {
    testScenarios(candidate, worldFor(candidate));
  });
}

export type ProgramCandidate = Omit<Candidate, "mode" | "leavesOut"> & { readonly mode: ProgramUnderTest };

/** All scenarios and stories as tests of one running program, in one world. */
export function describeProgram(candidate: ProgramCandidate): void {
  describe(`${candidate.title}`, () => {
    const world = worldFor(candidate);
    testScenarios(candidate, world);
    testStories(candidate, world);
  });
}

/** Made before the first test, and closed after the last one. */
function worldFor({ reasonToSkip, backEnd }: Candidate): () => World {
  let world: World;
  beforeAll(async () => {
    if (reasonToSkip === null) world = await createWorld("", backEnd);
  });
  afterAll(() => world?.close());
  return () => world;
}

function testScenarios(candidate: Candidate, world: () => World): void {
  const { program, mode, reasonToSkip, leavesOut, takes = () => true, atOnce } = candidate;
  for (const group of groupsFor(mode.name, program, leavesOut).filter(takes)) {
    let verdicts: Promise<Verdict[]> | null = null;
    for (const { name, packets } of group.scenarios) {
      const rows = [...new Set(packets.flatMap(({ rows }) => rows))].join(" ");
      it(`${name} (${rows})`, async ({ skip, onTestFailed }) => {
        if (reasonToSkip !== null) return skip(reasonToSkip);
        // A retry must send new packets.
        onTestFailed(() => {
          verdicts = null;
        });
        verdicts ??= checkGroup(world(), mode, group, atOnce);
        const own = (await verdicts).filter(({ packet }) => packet.scenario === name);
        const problems = own.flatMap(({ packet, problem }) =>
          problem === null ? [] : `${packet.line} ${problem}`,
        );
        expect(problems).toEqual([]);
      });
    }
  }
}

function testStories(candidate: ProgramCandidate, world: () => World): void {
  const { program, mode, reasonToSkip, takes = () => true } = candidate;
  for (const { scenario, stories } of storiesFor(mode.name, program)) {
    if (!takes({ story: scenario.name })) continue;
    describe(`${scenario.name}`, () => {
      beforeAll(async () => {
        if (reasonToSkip !== null) return;
        world().setForwardPolicy(scenario.settings.forwardPolicy);
        await mode.apply(world(), scenario.objects, scenario.settings);
      });
      afterAll(async () => {
        if (reasonToSkip !== null) return;
        await mode.clear(world());
        world().sweep();
      });
      for (const story of stories) {
        it(`${story.name} (${story.rows.join(" ")})`, async ({ skip }) => {
          if (reasonToSkip !== null) return skip(reasonToSkip);
          expect(await play(world(), mode, story)).toBeNull();
        });
      }
    });
  }
}

function storiesFor(
  mode: ModeName,
  program: Candidate["program"],
): { scenario: Scenario; stories: Story[] }[] {
  return scenarioNames()
    .map((name) => ({
      scenario: readScenario(name),
      stories: readStories(name).filter(
        ({ modes, programs }) => modes.includes(mode) && programs.includes(program),
      ),
    }))
    .filter(({ stories }) => stories.length > 0);
}
