// Judges a program in ipvs mode by real packets, inside a user-mode kernel; prints what is not as written.
import { findAssets } from "../assets.ts";
import { groupsFor, judgeGroup } from "../kernel/judge.ts";
import { kubeProxyProgram } from "../kernel/program.ts";
import { createWorld } from "../kernel/world.ts";

/** A first sync takes minutes here: hundreds of processes on a kernel that is itself a process. */
const slowly = { patienceMs: 900_000, everyMs: 1000 };

const [wanted = "", given] = process.argv.slice(2);
const names = wanted.split("+").filter((name) => name !== "");
const assets = findAssets("kube-proxy");
const program = given ?? (assets.found ? assets.paths["kube-proxy"] : null);

process.exitCode = program === null ? 1 : await judgeAll(program);

async function judgeAll(path: string): Promise<number> {
  let wrong = 0;
  for (const group of groupsFor("ipvs", given === undefined ? "kube-proxy" : "turnout")) {
    const scenarios = group.scenarios.filter(({ name }) => names.length === 0 || names.includes(name));
    if (scenarios.length === 0) continue;
    say(`judging ${scenarios.map(({ name }) => name).join(", ")}`);
    // Virtual servers and their device outlive rules: every group gets a world of its own.
    const world = await createWorld();
    try {
      const verdicts = await judgeGroup(
        world,
        kubeProxyProgram(path, "ipvs", slowly),
        { ...group, scenarios },
        40,
      );
      const problems = verdicts.filter(({ problem }) => problem !== null);
      for (const { packet, problem } of problems) say(`${packet.line} ${packet.rows.join(" ")} ${problem}`);
      wrong += problems.length;
    } finally {
      await world.close();
    }
  }
  say(`${wrong} packets met something else`);
  return wrong === 0 ? 0 : 1;
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
