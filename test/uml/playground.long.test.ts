// The playground in ipvs mode, as its users start it: the tour, with real packets.
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";

const root = join(import.meta.dirname, "..", "..");
const isBuilt = existsSync(join(root, "dist", "turnout.cjs"));

/** What the packets of the tour meet, in order. */
const met = [
  ...Array(3).fill("answered by web"),
  ...Array(2).fill("answered by web"),
  ...Array(2).fill("answered by cart"),
  "answered by web",
  "no answer",
  "rejected",
  "answered by dns",
  ...Array(3).fill("answered by web"),
  "answered by web",
];

it("makes the tour, and leaves nothing on the machine", async ({ skip }) => {
  skip(!isBuilt, "not built; build with: npm run build");
  const args = ["playground", "--mode=ipvs", "--once", "-o", "json"];
  const { stdout } = await promisify(execFile)(join(root, "bin", "turnout"), args);
  const printed = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Printed);
  const results = printed.flatMap(
    ({ outcome }) => / (answered by \w+|no answer|rejected|refused)/.exec(outcome ?? "")?.[1] ?? [],
  );
  expect(results).toEqual(met);
  expect(stdout).toContain("ipvs mode on node-a and node-b");
  expect(stdout).toContain("100.0 %  10.0.1.3:8080 on node-a  sees 10.0.1.4");
  expect(stdout).toContain("Everything is removed");
  const { stdout: namespaces } = await promisify(execFile)("ip", ["netns"]);
  expect(namespaces).toBe("");
});

type Printed = { readonly command?: string; readonly outcome?: string; readonly note?: string };
