// Commands as separate processes: on files that were just written, and for a user who is not root.
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeEach, expect, it } from "vitest";
import { isRoot } from "./netns.ts";

const root = join(import.meta.dirname, "..", "..");
const turnout = join(root, "bin", "turnout");
const nobody = ["--reuid=65534", "--regid=65534", "--clear-groups"];
const scratch = mkdtempSync(join(tmpdir(), "turnout-fresh-"));
const notBuilt = existsSync(join(root, "dist", "turnout.cjs"))
  ? null
  : "not built; build with: npm run build";
beforeEach(({ skip }) => skip(notBuilt !== null, notBuilt ?? ""));
afterAll(() => rmSync(scratch, { recursive: true }));

it.each([
  [["render"], 0, "shop/web:http"],
  [["explain", "node", "svc/shop/web"], 0, "forward to one of 2"],
  [["diff", `--against=files:${join(scratch, "new.yaml")}`], 3, "~ shop/web:http"],
])("turnout %j waits until files that were written just now are at rest", (argv, code, text) => {
  const shop = join(root, "test/support/shop/shop.yaml");
  writeFileSync(join(scratch, "new.yaml"), readFileSync(shop, "utf8").replace("30080", "30090"));
  cpSync(shop, join(scratch, "shop.yaml"));
  const line = [...argv, `--source=files:${join(scratch, "shop.yaml")}`, "--node=node-a"];
  const { status, stdout, stderr } = spawnSync(turnout, line, { encoding: "utf8" });
  expect(stdout).toContain(text);
  expect({ status, bug: stderr.includes("nothing is left") }).toEqual({ status: code, bug: false });
});

it.for([
  ["turnout", "explain", "node", "svc/shop/web", "--live", "--node=node-a"],
  ["turnout", "diff", "--live", "--node=node-a"],
  ["turnout", "doctor", "migrate", "--from=ipvs", "--to=nftables", "--live", "--node=node-a"],
  ["turnout", "flows", "--node=node-a"],
  ["turnout", "doctor", "flows", "--node=node-a"],
  ["turnout", "run", "--mode=nftables"],
])("user/5: %j of a user who is not root fails with one line, before anything else", (line, { skip }) => {
  expectRefusal([...line, `--source=files:${join(root, "test/support/shop")}`], skip);
});

it.for([[], ["--config=/nonexistent"], ["--cleanup"], ["--init-only"]])(
  "user/5: kube-proxy %j of a user who is not root fails with one line, before anything else",
  (args, { skip }) => expectRefusal(["kube-proxy", ...args], skip),
);

function expectRefusal(
  [program, ...args]: readonly string[],
  skip: (condition: boolean, why: string) => void,
) {
  const isOpen = isRoot && spawnSync("setpriv", [...nobody, "test", "-r", turnout]).status === 0;
  skip(!isOpen, "another user may not read this folder");
  const line = [...nobody, join(root, "bin", program!), ...args];
  const { status, stdout, stderr } = spawnSync("setpriv", line, { encoding: "utf8" });
  expect({ status, stdout, stderr }).toEqual({
    status: 1,
    stdout: "",
    stderr: expect.stringMatching(/^(turnout \w+|Error): cannot .* it requires root; run it with sudo\n$/),
  });
}

it("a playground's script continues after an error, and ends with 1", ({ skip }) => {
  skip(!isRoot, "needs root on Linux");
  const file = join(scratch, "script");
  writeFileSync(file, "scael web 3\nscale web many # as well\nsend web-1 svc/shop/cart:80\n");
  const line = ["playground", `--script=${file}`, "--port=0"];
  const { status, stdout } = spawnSync(turnout, line, { encoding: "utf8" });
  expect(stdout).toMatch(/did you mean scale\?\n(.*\n)*.*scale web 5\n(.*\n)*.*answered by cart-1/);
  expect(status).toBe(1);
});
