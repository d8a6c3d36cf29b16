// What tests receive when the real programs are present, and when they are not.
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { findAssets } from "./assets.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "turnout-assets-"));
  vi.stubEnv("KUBEBUILDER_ASSETS", folder);
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

function program(name: string): void {
  writeFileSync(join(folder, name), "#!/bin/sh\n");
  chmodSync(join(folder, name), 0o755);
}

describe("findAssets", () => {
  it("returns the paths of the programs in the folder that KUBEBUILDER_ASSETS names", () => {
    program("kube-proxy");
    expect(findAssets("kube-proxy")).toEqual({
      found: true,
      paths: { "kube-proxy": join(folder, "kube-proxy") },
    });
  });

  it("names what is missing and the command that provides it", () => {
    program("kube-proxy");
    const assets = findAssets("kube-proxy", "kube-apiserver", "kubectl");
    expect(assets).toEqual({
      found: false,
      reason: `no kube-apiserver, kubectl in ${folder}; provide with: npm run assets -- kube-apiserver kubectl`,
    });
  });

  it("does not take a file that cannot be run", () => {
    writeFileSync(join(folder, "kube-proxy"), "");
    expect(findAssets("kube-proxy").found).toBe(false);
  });
});
