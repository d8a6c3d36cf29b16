// The image that `npm run image` builds: layout, contents and size, and the rights that its programs need.
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Built, buildImage, type Layout, readLayout, reasonNotToBuild, unpack } from "./image.ts";
import { shop } from "./shop.ts";
import { nodeObject, openSite, reasonNotToRun, type Site } from "./site.ts";

const reason = reasonNotToRun() ?? (await reasonNotToBuild());
const { version } = JSON.parse(
  readFileSync(join(import.meta.dirname, "..", "..", "package.json"), "utf8"),
) as {
  version: string;
};
const long =
  process.env.TURNOUT_LONG === undefined ? "takes some minutes; run with: TURNOUT_LONG=1 npm test" : null;

describe("the image", () => {
  let folder = "";
  let rootfs = "";
  let built: Built;
  let layout: Layout;

  beforeAll(() => {
    if (reason !== null) return;
    folder = mkdtempSync(join(tmpdir(), "turnout-image-"));
    rootfs = join(folder, "rootfs");
    built = buildImage(folder);
    layout = readLayout(built.layout);
    for (const layer of layout.layers) unpack(layer, rootfs);
  }, 900_000);
  afterAll(() => {
    if (folder !== "") rmSync(folder, { recursive: true, force: true });
  });
  beforeEach(({ skip }) => skip(reason !== null, reason ?? ""));

  const inside = (...argv: readonly string[]) => {
    const { stdout, stderr, status } = spawnSync("chroot", [rootfs, ...argv], {
      encoding: "utf8",
      env: { PATH: imagePath() },
    });
    return { stdout, stderr, status };
  };
  const imagePath = () => environment().find(([name]) => name === "PATH")![1];
  const environment = () =>
    (layout.config.config.Env as string[]).map((each) => each.split("=") as [string, string]);

  it("is an OCI layout that docker reads too, with labels", () => {
    const { manifest, config, layers } = layout;
    expect(JSON.parse(readFileSync(join(built.layout, "oci-layout"), "utf8"))).toEqual({
      imageLayoutVersion: "1.0.0",
    });
    const [docker] = JSON.parse(readFileSync(join(built.layout, "manifest.json"), "utf8"));
    expect(docker.RepoTags).toEqual([`turnout:${version}`]);
    expect(docker.Layers.map((path: string) => join(built.layout, path))).toEqual(layers);
    expect(config).toMatchObject({ os: "linux", config: { Entrypoint: ["/usr/local/bin/kube-proxy"] } });
    expect(config.config.User).toBeUndefined();
    expect(config.config.Labels).toMatchObject({
      "org.opencontainers.image.title": "turnout",
      "org.opencontainers.image.version": version,
      "org.opencontainers.image.licenses": "Apache-2.0",
    });
    expect(manifest.annotations).toEqual(config.config.Labels);
  });

  it("is at most 230 MB, of which Node.js is 150", () => {
    const { digest, unpackedBytes, archiveBytes, snapshot, packages } = built.summary;
    print(
      `image: ${megabytes(unpackedBytes)} unpacked, ${megabytes(archiveBytes)} as archive, ${packages.length} Debian packages as of ${snapshot}, ${digest}`,
    );
    expect(unpackedBytes).toBeLessThanOrEqual(230e6);
  });

  it("has the paths of kube-proxy's image, and not the playground", () => {
    const kubernetes = new RegExp(`^Kubernetes v.*\\+turnout\\.${version}\n$`);
    expect(inside("/usr/local/bin/kube-proxy", "--version").stdout).toMatch(kubernetes);
    expect(inside("kube-proxy", "--version").stdout).toMatch(kubernetes);
    expect(inside("turnout", "--version").stdout).toBe(`turnout ${version}\n`);
    const log = ["--log-file=/tmp/kube-proxy.log", "--also-stdout"];
    expect(inside("/go-runner", ...log, "/usr/local/bin/kube-proxy", "--version").stdout).toMatch(kubernetes);
    for (const name of ["iptables-nft", "iptables-legacy", "ip6tables-nft", "ipset", "nft", "modprobe"])
      expect([name, inside(name, "--version").status]).toEqual([name, 0]);
    expect(readdirSync(join(rootfs, "opt/turnout/dist")).sort()).toEqual([
      "kube-proxy.cjs",
      "page.json",
      "turnout.cjs",
    ]);
  });

  it("has unmodified packages of Debian, with their licenses but without documentation and translations", () => {
    const excluded = /^\/usr\/share\/(doc|info|locale|man)\//;
    const paths = inside("dpkg", "--verify").stdout.match(/\/.*$/gm) ?? [];
    expect(paths.length).toBeGreaterThan(100);
    expect(paths.filter((path) => !excluded.test(path))).toEqual([]);
    expect(existsSync(join(rootfs, "usr/share/doc/iptables/copyright"))).toBe(true);
    expect(readdirSync(join(rootfs, "usr/share/doc/iptables"))).toEqual(["copyright"]);
  });

  it("has a bill of materials with every package, inside and beside it", () => {
    const inImage = readFileSync(join(rootfs, "opt/turnout/turnout.cdx.json"), "utf8");
    expect(JSON.parse(inImage)).toEqual(built.bill);
    const listed = built.bill.components.map(
      (each: { name: string; version: string }) => `${each.name}=${each.version}`,
    );
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a format of dpkg-query
    const installed = inside("dpkg-query", "--show", "--showformat=${Package}=${Version}\n").stdout;
    expect([...built.summary.packages].sort()).toEqual(installed.trim().split("\n").sort());
    expect(listed).toEqual(expect.arrayContaining([...built.summary.packages]));
    expect(listed.join("\n")).toMatch(/^koffi=/m);
    expect(listed.join("\n")).toMatch(
      new RegExp(`^node-linux-${process.arch}=${process.versions.node}$`, "m"),
    );
    const forPlatforms = built.bill.components.filter(
      (each: { scope?: string }) => each.scope === "optional",
    );
    const names = forPlatforms.map((each: { name: string }) => each.name);
    expect(names.sort()).toEqual([`@koromix/koffi-linux-${process.arch}`, `node-linux-${process.arch}`]);
  });

  it("has nothing of the machine that built it", () => {
    for (const path of ["etc/hostname", "etc/resolv.conf", "etc/apt/sources.list", "etc/machine-id"])
      expect([path, existsSync(join(rootfs, path))]).toEqual([path, false]);
  });

  it("built again, has the same digest", { timeout: 900_000 }, ({ skip }) => {
    skip(long !== null, long ?? "");
    const again = mkdtempSync(join(tmpdir(), "turnout-image-"));
    try {
      const { summary } = buildImage(again);
      print(`image: two builds: ${built.summary.digest} and ${summary.digest}`);
      expect(summary).toEqual(built.summary);
    } finally {
      rmSync(again, { recursive: true, force: true });
    }
  });

  describe("as a container with a read-only root", () => {
    let site: Site;
    afterEach(() => site?.close());

    it.each([
      ["nftables", ["net_admin"]],
      ["iptables", ["net_admin", "net_raw"]],
    ])("mode %s works with the capabilities %j alone", async (mode, capabilities) => {
      site = await openSite();
      await site.openApi();
      for (const object of [nodeObject(), ...shop()]) site.api.put(object);
      const { code, log } = await site.finish({ config: { mode }, args: ["--init-only"] });
      expect({ code, log }).toMatchObject({ code: 0 });
      const by = contained(rootfs, site.folder, environment(), capabilities);
      const daemon = site.start({ config: { mode }, by });
      await daemon.ready();
      const list = mode === "nftables" ? ["nft", "list", "ruleset"] : ["iptables-save"];
      expect(site.netns.run(list[0]!, ...list.slice(1))).toContain("172.30.0.10");
      const bits = { net_admin: 1n << 12n, net_raw: 1n << 13n } as Record<string, bigint>;
      const expected = capabilities.reduce((sum, name) => sum | bits[name]!, 0n);
      expect([capabilitiesOf(daemon.pid), expected]).toEqual([expected, expected]);
      print(`image: mode ${mode} synced with ${capabilities.join(" and ").toUpperCase()} alone`);
    });
  });
});

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Runs the image's kube-proxy instead of the given one: its files, its environment, these capabilities, nothing writable. */
function contained(
  rootfs: string,
  folder: string,
  environment: readonly (readonly [string, string])[],
  capabilities: readonly string[],
): string[] {
  const script = `
    set -e
    mount --bind "$1" "$1"
    mount -t proc -o ro proc "$1/proc"
    mount --rbind /dev "$1/dev"
    mkdir -p "$1$2"
    mount --bind "$2" "$1$2"
    mount -o remount,ro,bind "$1"
    root=$1 caps=$3
    shift 4
    exec chroot "$root" env -i ${environment.map(([name, value]) => `${name}=${value}`).join(" ")} \\
      setpriv --no-new-privs --bounding-set "$caps" --inh-caps -all /usr/local/bin/kube-proxy "$@"`;
  const kept = `-all${capabilities.map((name) => `,+${name}`).join("")}`;
  return ["unshare", "--mount", "sh", "-c", script, "sh", rootfs, folder, kept];
}

function capabilitiesOf(pid: number): bigint {
  const [, hex] = /^CapEff:\s+([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return BigInt(`0x${hex}`);
}

function megabytes(bytes: number): string {
  return `${Math.round(bytes / 1e6)} MB`;
}
