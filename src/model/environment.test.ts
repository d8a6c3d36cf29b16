// The environment of child processes: what is in it, and what a polluted prototype cannot add.
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { environmentOf } from "./environment.ts";

describe("security/1: environment of child processes", () => {
  it("merges layers, the last one wins, and keys have no special meaning", () => {
    const hostile = JSON.parse('{"__proto__":"a","constructor":"b"}') as Record<string, string>;
    const environment = environmentOf({ A: "1", B: "2", C: undefined }, { B: "3" }, hostile);
    expect(Object.getPrototypeOf(environment)).toBeNull();
    expect(Object.entries(environment)).toEqual([
      ["A", "1"],
      ["B", "3"],
      ["__proto__", "a"],
      ["constructor", "b"],
    ]);
  });

  it("reads nothing from a polluted prototype, which a plain object would pass on", () => {
    const started = (env: NodeJS.ProcessEnv) =>
      execFileSync("/usr/bin/env", [], { env, encoding: "utf8" }).includes("TURNOUT_POLLUTED");
    Object.defineProperty(Object.prototype, "TURNOUT_POLLUTED", {
      value: "yes",
      enumerable: true,
      writable: true,
      configurable: true,
    });
    try {
      expect(started({ ...process.env })).toBe(true);
      expect(started(environmentOf(process.env))).toBe(false);
    } finally {
      delete (Object.prototype as { TURNOUT_POLLUTED?: string }).TURNOUT_POLLUTED;
    }
  });

  it("is what every program of src/ and playground/ is started with", () => {
    const root = join(import.meta.dirname, "../..");
    const starts = ["src", "playground"]
      .flatMap((folder) =>
        readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }).map((path) =>
          join(folder, path),
        ),
      )
      .filter((path) => path.endsWith(".ts") && !path.endsWith(".test.ts"))
      .map((path) => [path, readFileSync(join(root, path), "utf8")] as const)
      .filter(([, text]) => text.includes("node:child_process"));
    expect(starts.length).toBeGreaterThan(2);
    for (const [path, text] of starts) {
      const calls =
        text.match(/(?<![.\w])(spawn|spawnSync|execFile|execFileSync|fork|exec|execSync)\(/g) ?? [];
      const environments = text.match(/\benvironmentOf\(/g) ?? [];
      expect({ path, calls: calls.length }).toEqual({ path, calls: environments.length });
    }
  });
});
