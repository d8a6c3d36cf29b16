// What setup prints where it cannot install packages: which ones, and what is skipped without them.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";

const root = join(import.meta.dirname, "..");

it("setup names the packages that tests in containers need", () => {
  const bin = mkdtempSync(join(tmpdir(), "turnout-setup-"));
  try {
    // A machine without apt-get.
    symlinkSync("/bin/sh", join(bin, "sh"));
    const { stdout, status } = spawnSync(process.execPath, ["scripts/setup.mjs", "--image"], {
      cwd: root,
      encoding: "utf8",
      env: { PATH: bin },
    });
    expect(status).toBe(0);
    expect(stdout).toMatch(
      /^setup: cannot install mmdebstrap(?: runc)?: needs root and apt-get; skipped without: building the image, and tests in containers\n$/,
    );
  } finally {
    rmSync(bin, { recursive: true });
  }
});
