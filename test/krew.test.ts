// The krew manifest follows the rules that krew checks, and names what the archive contains; the role has what the plugin uses.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { objectsIn } from "./support/helm.ts";

const root = join(import.meta.dirname, "..");
const text = (name: string) => readFileSync(join(root, name), "utf8");

type Platform = {
  readonly selector?: {
    readonly matchLabels?: Readonly<Record<string, string>>;
    readonly matchExpressions?: readonly {
      readonly key: string;
      readonly operator: string;
      readonly values: string[];
    }[];
  };
  readonly uri?: string;
  readonly sha256?: string;
  readonly bin?: string;
  readonly files?: readonly { readonly from?: string; readonly to?: string }[];
};
type Manifest = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly version: string;
    readonly homepage: string;
    readonly shortDescription: string;
    readonly description: string;
    readonly caveats: string;
    readonly platforms: readonly Platform[];
  };
};

const manifestIn = (yaml: string) => objectsIn(yaml)[0] as unknown as Manifest;

/** What krew refuses: https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest, and the checks of krew v0.4. */
function refusals(name: string, { apiVersion, kind, metadata, spec }: Manifest): string[] {
  const checks: [boolean, string][] = [
    [apiVersion === "krew.googlecontainertools.github.com/v1alpha2", "apiVersion"],
    [kind === "Plugin", "kind"],
    [/^[\w-]+$/.test(name) && metadata.name === name, "metadata.name: must be the name of the file"],
    [/^v\d+\.\d+\.\d+(-[\w.]+)?$/.test(spec.version), "spec.version: a semantic version with v"],
    [
      spec.shortDescription !== "" && !/[\r\n]/.test(spec.shortDescription),
      "spec.shortDescription: one line",
    ],
    [spec.platforms.length > 0, "spec.platforms"],
    ...Object.keys(spec).map((key): [boolean, string] => [specFields.includes(key), `spec.${key}: unknown`]),
    ...spec.platforms.flatMap(platformChecks),
  ];
  return checks.flatMap(([isMet, what]) => (isMet ? [] : [what]));
}

const specFields = "version homepage shortDescription description caveats platforms".split(" ");
const platformFields = "selector uri sha256 bin files".split(" ");

function platformChecks(platform: Platform): [boolean, string][] {
  const { uri = "", sha256 = "", bin = "", files, selector } = platform;
  const { matchLabels = {}, matchExpressions = [] } = selector ?? {};
  const keys = [...Object.keys(matchLabels), ...matchExpressions.map(({ key }) => key)];
  return [
    [/^https:\/\/.+\.(tar\.gz|zip)$/.test(uri), "uri: a .tar.gz or .zip"],
    [/^[a-f0-9]{64}$/.test(sha256), "sha256"],
    [bin !== "", "bin"],
    [files === undefined || files.length > 0, "files: absent or not empty"],
    [(files ?? []).every(({ from, to }) => from && to), "files: from and to"],
    [keys.length > 0 && keys.every((key) => key === "os" || key === "arch"), "selector: os or arch"],
    [Object.keys(platform).every((key) => platformFields.includes(key)), "platform: unknown field"],
  ];
}

describe("the krew manifest", () => {
  const manifest = manifestIn(text("deploy/krew/turnout.yaml"));

  it("is one that krew accepts, of the version of this repository", () => {
    expect(refusals("turnout", manifest)).toEqual([]);
    const { version } = JSON.parse(text("package.json")) as { version: string };
    expect(manifest.spec.version).toBe(`v${version}`);
  });

  it("the check itself refuses mistakes", () => {
    const [platform] = manifest.spec.platforms as [Platform];
    const wrong = {
      ...platform,
      sha256: "0",
      files: [{ from: "a" }],
      selector: { matchLabels: { cpu: "x" } },
    };
    const spec = { ...manifest.spec, version: "0.1.0", shortDescription: "a\nb", platforms: [wrong] };
    expect(refusals("other", { ...manifest, spec })).toEqual([
      "metadata.name: must be the name of the file",
      "spec.version: a semantic version with v",
      "spec.shortDescription: one line",
      "sha256",
      "files: from and to",
      "selector: os or arch",
    ]);
  });

  it("a release has an archive with these files, and its checksum; the same bytes each time", () => {
    const made = () => {
      const addresses = ["https://release.example/x.tar.gz", "https://release.example/"];
      execFileSync(process.execPath, [join(root, "scripts/krew.mjs"), ...addresses]);
      return readFileSync(join(root, "dist/kubectl-turnout.tar.gz"));
    };
    const archive = made();
    expect(made().equals(archive)).toBe(true);
    const { spec } = manifestIn(text("dist/turnout.yaml"));
    const [platform] = spec.platforms as [Platform];
    expect(text("dist/turnout.yaml")).not.toMatch(/turnout\.example|placeholder/);
    expect(spec.homepage).toBe("https://release.example/");
    expect(platform.sha256).toBe(createHash("sha256").update(archive).digest("hex"));
    expect(platform.uri).toBe("https://release.example/x.tar.gz");
    const names = execFileSync("tar", ["tz"], { input: archive, encoding: "utf8" }).trimEnd().split("\n");
    expect(platform.files!.map(({ from }) => from)).toEqual(names);
    expect(names).toContain(platform.bin);
  });
});

it("the role of the plugin has pods, exec, logs and port-forward in one namespace, and nothing else", () => {
  const [role] = objectsIn(text("deploy/kubectl/role.yaml")) as unknown as {
    kind: string;
    metadata: { namespace: string };
    rules: { apiGroups: string[]; resources: string[]; verbs: string[] }[];
  }[];
  expect([role!.kind, role!.metadata.namespace]).toEqual(["Role", "kube-system"]);
  const rights = role!.rules.flatMap(({ resources, verbs }) =>
    resources.flatMap((resource) => verbs.map((verb) => `${verb} ${resource}`)),
  );
  expect(rights.sort()).toEqual([
    "create pods/exec",
    "create pods/portforward",
    "get pods",
    "get pods/exec",
    "get pods/log",
    "get pods/portforward",
    "list pods",
  ]);
  expect(text("docs/kubectl.md")).toContain("equals root on its node");
});
