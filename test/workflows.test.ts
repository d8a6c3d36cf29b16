// The workflows that run the tests and publish a release: accepted by actionlint, pinned, and with no more rights than they need.
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { findAssets } from "./assets.ts";

const root = join(import.meta.dirname, "..");
const folder = join(root, ".github", "workflows");
const files = readdirSync(folder);
const text = (name: string) => readFileSync(join(folder, name), "utf8");
// biome-ignore lint/suspicious/noExplicitAny: workflows are trees of anything
const workflow = (name: string) => parse(text(name)) as any;
const actionlint = findAssets("actionlint");

it("there are two: of the tests and of the release", () => {
  expect(files.sort()).toEqual(["ci.yml", "release.yml"]);
});

describe.each(files)("%s", (name) => {
  it("is accepted by actionlint", ({ skip }) => {
    if (!actionlint.found) return skip(actionlint.reason);
    const { stdout, status } = spawnSync(actionlint.paths.actionlint, [join(folder, name)], {
      encoding: "utf8",
    });
    expect({ stdout, status }).toEqual({ stdout: "", status: 0 });
  });

  it("security/11: uses actions by the digest of a commit, with their version, and no credentials after checkout", () => {
    const uses = text(name).match(/^.*\buses:.*$/gm) ?? [];
    expect(uses.length).toBeGreaterThan(0);
    for (const line of uses) expect(line).toMatch(/uses: [\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
    const checkouts = text(name).match(/uses: actions\/checkout@/g) ?? [];
    expect(text(name).match(/persist-credentials: false/g)).toHaveLength(checkouts.length);
  });

  it("security/11: reads the repository by default; only the job that publishes has other rights", () => {
    const { permissions, jobs } = workflow(name);
    expect(permissions).toEqual({ contents: "read" });
    const others = Object.entries<{ permissions?: object }>(jobs).filter(([, job]) => job.permissions);
    expect(others.map(([job]) => job)).toEqual(name === "release.yml" ? ["publish"] : []);
  });

  it("runs scripts that package.json has", () => {
    const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    for (const [, script = ""] of text(name).matchAll(/npm run (\S+)/g))
      expect(Object.keys(scripts)).toContain(script);
  });
});

describe("a release", () => {
  const release = workflow("release.yml");
  const steps = JSON.stringify(release.jobs.publish.steps);

  it("is made for a tag alone, for both architectures", () => {
    expect(release.on).toEqual({ push: { tags: ["v*"] } });
    const { include } = release.jobs.build.strategy.matrix;
    expect(include.map(({ architecture }: { architecture: string }) => architecture)).toEqual([
      "amd64",
      "arm64",
    ]);
  });

  it("is signed, and has provenance, notes, the chart and the kubectl plugin", () => {
    for (const part of ["cosign sign ", "cosign attest", "cosign sign-blob", "attest-build-provenance"])
      expect(steps).toContain(part);
    for (const part of ["NOTES.md", "helm push", "kubectl-turnout.tar.gz", "k8s$MINOR", "SHA256SUMS"])
      expect(steps).toContain(part);
  });

  it("takes the minor of Kubernetes from the program's version", () => {
    const { status, stdout } = spawnSync(
      "sed",
      ["-E", String.raw`s/^Kubernetes v([0-9]+\.[0-9]+)\..*$/\1/`],
      {
        input: "Kubernetes v1.37.1+turnout.0.1.0\n",
        encoding: "utf8",
      },
    );
    expect([status, stdout]).toEqual([0, "1.37\n"]);
    expect(release.jobs.publish.steps.map(({ run = "" }) => run).join("\n")).toContain(
      String.raw`sed -E 's/^Kubernetes v([0-9]+\.[0-9]+)\..*$/\1/'`,
    );
  });
});
