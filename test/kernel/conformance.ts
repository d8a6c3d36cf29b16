// All scenarios as tests of one program in one mode, judged by real packets.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { PacketCase } from "../scenarios.ts";
import { groupsFor, judgeGroup, type ModeUnderTest, type Verdict } from "./judge.ts";
import { createWorld, type World } from "./world.ts";

export type Candidate = {
  readonly title: string;
  readonly program: "turnout" | "kube-proxy";
  readonly mode: ModeUnderTest;
  /** null: it can be judged here; else why it cannot. */
  readonly reasonToSkip: string | null;
  /** Cases that this candidate has no part in, such as what a daemon adds to a Plan. */
  readonly leavesOut?: (packet: PacketCase) => boolean;
};

export function describeConformance({ title, program, mode, reasonToSkip, leavesOut }: Candidate): void {
  describe(`${title}`, () => {
    let world: World;
    beforeAll(async () => {
      if (reasonToSkip === null) world = await createWorld();
    });
    afterAll(() => world?.close());

    for (const group of groupsFor(mode.name, program, leavesOut)) {
      let verdicts: Promise<Verdict[]> | null = null;
      for (const { name, packets } of group.scenarios) {
        const rows = [...new Set(packets.flatMap(({ rows }) => rows))].join(" ");
        it(`${name} (${rows})`, async ({ skip }) => {
          if (reasonToSkip !== null) return skip(reasonToSkip);
          verdicts ??= judgeGroup(world, mode, group);
          const own = (await verdicts).filter(({ packet }) => packet.scenario === name);
          const problems = own.flatMap(({ packet, problem }) =>
            problem === null ? [] : `${packet.line} ${problem}`,
          );
          expect(problems).toEqual([]);
        });
      }
    }
  });
}
