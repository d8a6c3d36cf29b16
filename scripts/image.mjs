// Builds the image as an OCI archive, without Docker: Debian packages, Node.js, the two programs; same input, same digest.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { billOfMaterials } from "./bill.mjs";
import { root } from "./bundle.mjs";
import { debianBase, suite } from "./image/debian.mjs";
import { nodeFiles, programFiles } from "./image/files.mjs";
import { ociArchive } from "./image/oci.mjs";
import { tar } from "./image/tar.mjs";

const usage = `usage: npm run image [-- FLAG…]

Builds the image for this machine's architecture as dist/image/turnout-VERSION-ARCH.tar, an OCI archive. Beside it:
its bill of materials (.cdx.json) and its digest, size and packages (.json).

  --name=NAME       name of the image, with the registry (turnout)
  --tag=TAG         tag of the image (the version)
  --label=KEY=VALUE adds a label; can be repeated
  --snapshot=TIME   Debian packages as of this time, from snapshot.debian.org: 20261115T221817Z (the newest)
  --output=DIR      where to write (dist/image)

SOURCE_DATE_EPOCH sets the image's time; by default that of the checked-out commit.`;

const architectures = { x64: "amd64", arm64: "arm64" };
const {
  name: title,
  version,
  description,
  license,
} = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

try {
  main();
} catch (error) {
  console.error(`image: ${error.message}`);
  process.exitCode = 1;
}

function main() {
  const { values } = parseArgs({
    options: {
      help: { type: "boolean", short: "h" },
      name: { type: "string", default: title },
      tag: { type: "string", default: version },
      label: { type: "string", multiple: true, default: [] },
      snapshot: { type: "string" },
      output: { type: "string", default: join(root, "dist", "image") },
    },
  });
  if (values.help) return console.log(usage);
  const architecture = architectures[process.arch];
  if (architecture === undefined)
    throw new Error(`cannot build for ${process.arch}: there is no Node.js package for it`);
  const folder = mkdtempSync(join(tmpdir(), "turnout-image-"));
  try {
    write(build(folder, architecture, values), architecture, values);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function build(folder, architecture, { name, tag, label, snapshot }) {
  print(`installing Debian packages (${suite}${snapshot === undefined ? "" : ` of ${snapshot}`})`);
  const base = debianBase(folder, snapshot);
  const bill = withDebian(billOfMaterials({ os: "linux", cpu: process.arch }), base.packages);
  print("packing layers");
  const layers = [
    { content: base.content, comment: `mmdebstrap ${suite}` },
    { content: tar(nodeFiles()), comment: "Node.js" },
    { content: tar(programFiles(text(bill))), comment: `${title} ${version}` },
  ];
  const image = ociArchive({
    name,
    tag,
    architecture,
    created: created(),
    labels: { ...standardLabels(), ...Object.fromEntries(label.map(keyAndValue)) },
    run: {
      // As in the image of kube-proxy: a DaemonSet that names only arguments works too.
      Entrypoint: ["/usr/local/bin/kube-proxy"],
      Env: ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "NODE_ENV=production"],
      WorkingDir: "/",
    },
    layers,
  });
  return { ...image, bill, base };
}

function write({ archive, digest, unpackedBytes, bill, base }, architecture, { name, tag, output }) {
  mkdirSync(output, { recursive: true });
  const stem = join(output, `${title}-${version}-${architecture}`);
  writeFileSync(`${stem}.tar`, archive);
  writeFileSync(`${stem}.cdx.json`, text(bill));
  const summary = {
    image: `${name}:${tag}`,
    digest,
    unpackedBytes,
    archiveBytes: archive.length,
    snapshot: base.snapshot,
    packages: base.packages.map((each) => `${each.name}=${each.version}`),
  };
  writeFileSync(`${stem}.json`, text(summary));
  print(`wrote ${stem}.tar: ${megabytes(archive.length)}, unpacked ${megabytes(unpackedBytes)}`);
  print(`digest ${digest}`);
  print(`Debian packages as of ${base.snapshot}: to build the same again, pass --snapshot=${base.snapshot}`);
}

/** Debian's packages, as scanners name them. */
function withDebian(bill, packages) {
  const debian = packages.map((each) => {
    const { name, version: installed, architecture } = each;
    const purl = `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(installed)}?arch=${architecture}&distro=${suite}`;
    return { "bom-ref": purl, type: "library", name, version: installed, purl };
  });
  return { ...bill, components: [...bill.components, ...debian] };
}

function standardLabels() {
  return {
    "org.opencontainers.image.title": title,
    "org.opencontainers.image.description": description,
    "org.opencontainers.image.version": version,
    "org.opencontainers.image.licenses": license,
    "org.opencontainers.image.created": created(),
  };
}

function keyAndValue(label) {
  const at = label.indexOf("=");
  if (at < 1) throw new Error(`invalid --label=${label}: must be KEY=VALUE`);
  return [label.slice(0, at), label.slice(at + 1)];
}

function created() {
  return new Date(Number(process.env.SOURCE_DATE_EPOCH || commitTime()) * 1000)
    .toISOString()
    .replace(".000", "");
}

function commitTime() {
  try {
    const git = ["log", "-1", "--format=%ct"];
    return execFileSync("git", git, { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  } catch {
    throw new Error("cannot find the time of the image: not a git repository; set SOURCE_DATE_EPOCH");
  }
}

function text(value) {
  return `${JSON.stringify(value, null, 2)}\n`;
}

function megabytes(bytes) {
  return `${Math.round(bytes / 1e6)} MB`;
}

function print(line) {
  console.log(`image: ${line}`);
}
