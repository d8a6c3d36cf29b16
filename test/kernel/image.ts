// Builds the image, or finds the reason why it cannot be built here; reads and unpacks what was built.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";

const root = join(import.meta.dirname, "..", "..");
const mirror = "http://deb.debian.org/debian/dists/bookworm/InRelease";

export type Summary = {
  readonly image: string;
  readonly digest: string;
  readonly unpackedBytes: number;
  readonly archiveBytes: number;
  readonly snapshot: string;
  readonly packages: readonly string[];
};

// biome-ignore lint/suspicious/noExplicitAny: the standard has a tree for each media type
type Tree = any;

export type Built = {
  readonly summary: Summary;
  /** The bill of materials beside the archive. */
  readonly bill: Tree;
  /** The archive, unpacked. */
  readonly layout: string;
};

export type Layout = { readonly manifest: Tree; readonly config: Tree; readonly layers: readonly string[] };

/** null when the image can be built here. */
export async function reasonNotToBuild(): Promise<string | null> {
  const hasTool = (process.env.PATH ?? "").split(":").some((path) => existsSync(join(path, "mmdebstrap")));
  if (!hasTool) return "no mmdebstrap; install the Debian package mmdebstrap";
  const answers = await fetch(mirror, { method: "HEAD", signal: AbortSignal.timeout(20_000) }).then(
    ({ ok }) => ok,
    () => false,
  );
  return answers ? null : `no Debian mirror: ${mirror} does not answer`;
}

export function buildImage(folder: string): Built {
  const args = ["scripts/image.mjs", `--output=${folder}`];
  const { status, stderr } = spawnSync(process.execPath, args, { cwd: root, encoding: "utf8" });
  if (status !== 0) throw new Error(`cannot build the image: ${stderr}`);
  const [archive] = readdirSync(folder).filter((name) => name.endsWith(".tar")) as [string];
  const beside = (end: string) => json(join(folder, archive.replace(/\.tar$/, end)));
  const layout = join(folder, "layout");
  unpack(join(folder, archive), layout);
  return { summary: beside(".json") as Summary, bill: beside(".cdx.json"), layout };
}

/** What the standard requires one to follow: index, manifest, configuration, layers; every digest is checked. */
export function readLayout(layout: string): Layout {
  const follow = ({ digest, size }: Tree) => {
    const path = join(layout, "blobs", digest.replace(":", "/"));
    const content = readFileSync(path);
    const found = { digest: sha256(content), size: content.length };
    if (found.digest !== digest || found.size !== size) throw new Error(`${path} does not match its digest`);
    return { path, content };
  };
  const [described] = (json(join(layout, "index.json")) as Tree).manifests;
  const manifest = JSON.parse(follow(described).content.toString());
  const config = JSON.parse(follow(manifest.config).content.toString());
  const layers = manifest.layers.map(follow) as ReturnType<typeof follow>[];
  const diffs = layers.map(({ content }) => sha256(gunzipSync(content)));
  if (diffs.join() !== config.rootfs.diff_ids.join())
    throw new Error("layers do not match the configuration");
  return { manifest, config, layers: layers.map(({ path }) => path) };
}

export function unpack(archive: string, folder: string): void {
  mkdirSync(folder, { recursive: true });
  const { status, stderr } = spawnSync("tar", ["-xf", archive, "-C", folder], { encoding: "utf8" });
  if (status !== 0) throw new Error(`cannot unpack ${archive}: ${stderr}`);
}

function json(path: string): unknown {
  return JSON.parse(readFileSync(path, "utf8"));
}

function sha256(content: Buffer): string {
  return `sha256:${createHash("sha256").update(content).digest("hex")}`;
}
