// `npm start` and the playground without root, on a copy of the tree that belongs to another user: they report it before they do anything else.
import { spawnSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const root = join(import.meta.dirname, "..");
const nobody = 65_534;
const isRoot = process.getuid?.() === 0;
const without = "bin/turnout render --source=files:examples/shop --node=node-a";

describe.skipIf(!isRoot)("user/5: a start without root", () => {
  // Without node_modules and dist, as after `git clone`.
  const clone = mkdtempSync(join(tmpdir(), "turnout-clone-"));
  beforeAll(() => {
    for (const name of ["package.json", "package-lock.json", "bin", "scripts", "examples"])
      cpSync(join(root, name), join(clone, name), { recursive: true });
    chmodSync(clone, 0o755);
  });
  afterAll(() => rmSync(clone, { recursive: true }));

  const asNobody = (command: string, ...args: string[]) => {
    const { status, stdout, stderr } = spawnSync(command, args, {
      cwd: clone,
      uid: nobody,
      gid: nobody,
      encoding: "utf8",
      env: { PATH: process.env.PATH, HOME: "/nonexistent" },
    });
    return { status, text: stdout + stderr };
  };

  it("of npm reports it in one line, and what works; nothing is installed or built, nothing is traced", () => {
    const { status, text } = asNobody("npm", "start", "--silent");
    expect(status).toBe(1);
    expect(text.match(/needs root/g)).toHaveLength(1);
    expect(text).toContain(`npm run build, ${without}`);
    expect(text).not.toMatch(/^ +at |setup:|EACCES/m);
    expect(readdirSync(clone).sort()).toEqual([
      "bin",
      "examples",
      "package-lock.json",
      "package.json",
      "scripts",
    ]);
  });

  it("of npm in a folder of one's own or a built one reports what works there", () => {
    chmodSync(clone, 0o777);
    expect(asNobody("npm", "start", "--silent").text).toContain(`without root: npm run build && ${without}`);
    chmodSync(clone, 0o755);
    mkdirSync(join(clone, "dist"));
    cpSync(join(root, "package.json"), join(clone, "dist", "turnout.cjs"));
    expect(asNobody("npm", "start", "--silent").text).toContain(`without root: ${without}`);
    rmSync(join(clone, "dist"), { recursive: true });
  });

  it.each(["playground", "run"])("of turnout %s reports it before it requires a build", (command) => {
    expect(existsSync(join(clone, "dist"))).toBe(false);
    expect(asNobody("bin/turnout", command)).toEqual({
      status: 1,
      text: `turnout: ${command} needs root: try sudo\n`,
    });
  });
});
