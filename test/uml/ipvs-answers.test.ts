// What our daemon serves for monitoring in ipvs mode, compared with the real kube-proxy in such a kernel.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { findAssets } from "../assets.ts";
import { answersOf } from "../differential/answers.ts";
import { ipvsCorpusFolder } from "../reference/corpus.ts";

const root = join(import.meta.dirname, "..", "..");
const file = "answers.json";
const assets = findAssets("kube-proxy");

/** `TURNOUT_RECORD=1`: the answers of the real one are recorded again before they are compared; minutes. */
async function record(program: string): Promise<void> {
  const writable = "/run/recorded-answers";
  mkdirSync(writable);
  execFileSync("mount", ["-t", "hostfs", "none", writable, "-o", ipvsCorpusFolder]);
  const answers = await answersOf(program, "ipvs", { timeoutMs: 900_000, everyMs: 500 });
  writeFileSync(join(writable, file), `${JSON.stringify(answers, null, 2)}\n`);
}

it("03/33 answers of ipvs mode are those of kube-proxy v1.37", async ({ skip }) => {
  if (!existsSync(join(root, "dist", "kube-proxy.cjs"))) return skip("not built; build with: npm run build");
  if (process.env.TURNOUT_RECORD !== undefined) {
    if (!assets.found) return skip(assets.reason);
    await record(assets.paths["kube-proxy"]);
  }
  const theirs = JSON.parse(readFileSync(join(ipvsCorpusFolder, file), "utf8"));
  const pace = { timeoutMs: 180_000, everyMs: 100 };
  expect(await answersOf(join(root, "bin", "kube-proxy"), "ipvs", pace)).toEqual(theirs);
});
