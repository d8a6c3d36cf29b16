// Which program is Turnout in the suites that run it as a whole.
import { spawnSync } from "node:child_process";
import { join } from "node:path";

/** `TURNOUT_PROGRAM` names another one, such as the real kube-proxy to try a suite itself. */
export const ourProgram = process.env.TURNOUT_PROGRAM ?? join(import.meta.dirname, "../../bin/kube-proxy");

/** null when it runs; otherwise its message. */
export function reasonNotToRun(program: string): string | null {
  const { status, stderr, error } = spawnSync(program, ["--version"], { encoding: "utf8" });
  return status === 0 ? null : `cannot run ${program}: ${error?.message ?? stderr.trim()}`;
}
