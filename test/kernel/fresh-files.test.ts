// Commands as programs of their own, on files that were written just now: they wait until the files are at rest.
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";

const root = join(import.meta.dirname, "..", "..");
const scratch = mkdtempSync(join(tmpdir(), "turnout-fresh-"));
afterAll(() => rmSync(scratch, { recursive: true }));

it.each([
  [["render"], 0, "shop/web:http"],
  [["explain", "node", "svc/shop/web"], 0, "forward to one of 2"],
  [["diff", `--against=files:${join(scratch, "new.yaml")}`], 3, "~ shop/web:http"],
])("turnout %j", (argv, code, words) => {
  const shop = join(root, "examples/shop/shop.yaml");
  writeFileSync(join(scratch, "new.yaml"), readFileSync(shop, "utf8").replace("30080", "30090"));
  cpSync(shop, join(scratch, "shop.yaml"));
  const line = [...argv, `--source=files:${join(scratch, "shop.yaml")}`, "--node=node-a"];
  const { status, stdout, stderr } = spawnSync(join(root, "bin", "turnout"), line, { encoding: "utf8" });
  expect(stdout).toContain(words);
  expect({ status, bug: stderr.includes("nothing is left") }).toEqual({ status: code, bug: false });
});
