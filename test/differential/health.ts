// What load balancers are headerNames: the answers on health check node ports, compared on every kind of address.
import { setTimeout as sleep } from "node:timers/promises";
import { families, joinHostPort } from "../../src/model/address.ts";
import { httpGet } from "../kernel/http.ts";
import type { World } from "../kernel/world.ts";
import { inFamily, type Place, places, secondNodeAddress } from "../places.ts";
import { healthCheckPorts } from "../reference/case-services.ts";
import type { Sides } from "./arena.ts";
import type { Difference } from "./oracle.ts";

type Question = { readonly from: Place; readonly to: string };

const questions: readonly Question[] = healthCheckPorts.flatMap((port) =>
  families.flatMap((family) =>
    (
      [
        ["X", places.host],
        ["X", secondNodeAddress],
        ["host", "127.0.0.1"],
      ] as const
    ).map(([from, address]) => ({ from, to: joinHostPort(inFamily(address, family), port) })),
  ),
);

/** The servers follow the rules a moment later, so a difference counts when it stays. */
export async function compareHealth(sides: Sides): Promise<readonly Difference[]> {
  const deadline = Date.now() + 3000;
  for (;;) {
    const answers = await Promise.all(questions.map((one) => askBoth(sides, one)));
    const differences = answers.filter(({ theirs, ours }) => theirs !== ours);
    if (differences.length === 0 || Date.now() > deadline) return differences.map(differenceOf);
    await sleep(200);
  }
}

type Answers = Question & { readonly theirs: string; readonly ours: string };

async function askBoth([reference, ours]: Sides, question: Question): Promise<Answers> {
  const [theirs, own] = await Promise.all([
    responseTo(reference.world, question),
    responseTo(ours.world, question),
  ]);
  return { ...question, theirs, ours: own };
}

async function responseTo({ at }: World, { from, to }: Question): Promise<string> {
  const answer = await httpGet(at[from], `http://${to}/`);
  if (answer === null) return "nothing";
  const { status, headers, body } = answer;
  const headerNames = ["content-type", "x-content-type-options", "x-load-balancing-endpoint-weight"];
  return JSON.stringify([status, ...headerNames.map((name) => headers[name]), body]);
}

function differenceOf({ from, to, theirs, ours }: Answers): Difference {
  return {
    service: "",
    text: `${from} → http://${to}/ (health check)\n    kube-proxy: ${theirs}\n    ours:       ${ours}`,
  };
}
