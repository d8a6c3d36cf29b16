// Tests of listing the running playgrounds.

import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { livingPlaygrounds } from "../../src/inspect/playgrounds.ts";

it("lists running playgrounds by start time, not by process id", () => {
  const folder = mkdtempSync(join(tmpdir(), "turnout-states-"));
  const kept = (pid: number, second: number) => {
    mkdirSync(join(folder, String(pid)));
    const file = join(folder, String(pid), "kubeconfig");
    writeFileSync(file, "");
    utimesSync(file, second, second);
  };
  try {
    expect(livingPlaygrounds(join(folder, "none"))).toEqual([]);
    // Larger than any process id.
    kept(2 ** 22 + 1, 9);
    kept(process.pid, 1);
    kept(process.ppid, 2);
    mkdirSync(join(folder, "other"));
    expect(livingPlaygrounds(folder)).toEqual([process.pid, process.ppid]);
    utimesSync(join(folder, String(process.pid), "kubeconfig"), 3, 3);
    expect(livingPlaygrounds(folder)).toEqual([process.ppid, process.pid]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
