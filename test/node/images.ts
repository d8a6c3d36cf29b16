// The images that the test cluster runs, assembled from Debian packages and the programs of `npm run assets`: without a registry.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  copyFileSync,
  createReadStream,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";

export type ImagePrograms = Readonly<
  Record<"agnhost" | "kube-proxy" | "coredns" | "regression-issue-74839", string>
>;

/** Names as upstream's tests use them. */
export const imageNames = {
  pause: "registry.k8s.io/pause:3.10.2",
  agnhost: "registry.k8s.io/e2e-test-images/agnhost:2.66.1",
  busybox: "registry.k8s.io/e2e-test-images/busybox:1.37.0-2",
  regression: "registry.k8s.io/e2e-test-images/regression-issue-74839:1.5",
  iptables: "registry.k8s.io/build-image/distroless-iptables:v0.9.7",
  kubeProxy: "registry.k8s.io/kube-proxy:v1.37.1",
  coredns: "registry.k8s.io/coredns/coredns:v1.15.0",
} as const;

const packages = [
  ...["bash", "busybox", "ca-certificates", "conntrack", "curl", "dnsutils", "iproute2", "ipset", "iptables"],
  ...["iputils-ping", "kmod", "netcat-openbsd", "nftables", "socat", "wget"],
];

type Image = {
  readonly names: readonly string[];
  /** Program → path in the image. */
  readonly files: Readonly<Record<string, string>>;
  readonly entrypoint: readonly string[];
  readonly command?: readonly string[];
};

// Runs until it is stopped, and uses almost no memory.
const pause = ["/bin/sh", "-c", "trap 'exit 0' TERM INT; while :; do sleep 3600 & wait $!; done"];

function imagesOf(programs: ImagePrograms): readonly Image[] {
  const none = { files: {}, entrypoint: [] };
  return [
    { ...none, names: [imageNames.pause], entrypoint: pause },
    { ...none, names: [imageNames.busybox], command: ["sh"] },
    { ...none, names: [imageNames.iptables] },
    {
      names: [imageNames.agnhost],
      files: { "/agnhost": programs.agnhost },
      entrypoint: ["/agnhost"],
      command: ["pause"],
    },
    {
      names: [imageNames.regression],
      files: { "/regression-issue-74839": programs["regression-issue-74839"] },
      entrypoint: ["/regression-issue-74839"],
    },
    {
      names: [imageNames.kubeProxy],
      files: { "/usr/local/bin/kube-proxy": programs["kube-proxy"] },
      entrypoint: [],
    },
    { names: [imageNames.coredns], files: { "/coredns": programs.coredns }, entrypoint: ["/coredns"] },
  ];
}

/** Writes one archive with all images, for `ctr images import`; kept between runs in `folder`, by what it is made of. */
export async function buildImages(folder: string, programs: ImagePrograms): Promise<string> {
  const archive = join(folder, `test-images-${digestOf(programs)}.tar`);
  if (existsSync(archive)) return archive;
  mkdirSync(folder, { recursive: true });
  const scratch = mkdtempSync(join(folder, "building-"));
  try {
    const base = await baseLayer(scratch);
    const manifest: object[] = [];
    for (const image of imagesOf(programs)) manifest.push(await addImage(scratch, base, image));
    writeFileSync(join(scratch, "manifest.json"), JSON.stringify(manifest));
    const parts = ["manifest.json", "layers", "configs"];
    execFileSync("tar", ["-C", scratch, "-cf", `${archive}.partial`, ...parts]);
    renameSync(`${archive}.partial`, archive);
    return archive;
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** Of this file, and of the programs by size and time. */
function digestOf(programs: ImagePrograms): string {
  const hash = createHash("sha256").update(readFileSync(import.meta.filename));
  for (const path of Object.values(programs)) {
    const { size, mtimeMs } = statSync(path);
    hash.update(`${path} ${size} ${mtimeMs}\n`);
  }
  return hash.digest("hex").slice(0, 16);
}

/** A layer in the archive: its path there and its digest. */
type Layer = { readonly path: string; readonly digest: string };

async function baseLayer(scratch: string): Promise<readonly Layer[]> {
  const tar = join(scratch, "base.tar");
  const args = ["--quiet", "--variant=extract", `--include=${packages.join(",")}`, "bookworm", tar];
  execFileSync("mmdebstrap", args, { stdio: ["ignore", "inherit", "inherit"] });
  return [await asLayer(scratch, tar), await asLayer(scratch, await linksLayer(scratch))];
}

/** What the packages' own scripts would set up: names of commands, users, and a place for locks. */
async function linksLayer(scratch: string): Promise<string> {
  const root = join(scratch, "links");
  const applets = execFileSync("busybox", ["--list"], { encoding: "utf8" }).trim().split("\n");
  const own = new Set([
    "busybox",
    "bash",
    "curl",
    "ip",
    "ss",
    "nc",
    "ping",
    "dig",
    "nslookup",
    "modprobe",
    "wget",
    "sh",
  ]);
  const link = (at: string, to: string): void => {
    mkdirSync(dirname(join(root, at)), { recursive: true });
    symlinkSync(to, join(root, at));
  };
  for (const applet of applets) if (!own.has(applet)) link(`bin/${applet}`, "/bin/busybox");
  // The shell of busybox prefers its own commands to those in PATH, its nc lacks flags that upstream's tests use, and its wget crashes.
  link("bin/sh", "/bin/bash");
  link("bin/nc", "/bin/nc.openbsd");
  for (const name of ["iptables", "ip6tables"])
    for (const action of ["", "-save", "-restore"])
      link(`usr/sbin/${name}${action}`, `/usr/sbin/${name}-nft${action}`);
  mkdirSync(join(root, "etc"), { recursive: true });
  mkdirSync(join(root, "uploads"));
  mkdirSync(join(root, "tmp"), { mode: 0o1777 });
  chmodSync(join(root, "tmp"), 0o1777);
  writeFileSync(
    join(root, "etc/passwd"),
    "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n",
  );
  writeFileSync(join(root, "etc/nsswitch.conf"), "hosts: files dns\n");
  writeFileSync(join(root, "etc/group"), "root:x:0:\nnogroup:x:65534:\n");
  writeCertificate(root);
  return packed(scratch, root);
}

/** agnhost's `porter` serves TLS with these two files. */
function writeCertificate(root: string): void {
  const names = "subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1";
  execFileSync(
    "openssl",
    [
      ...["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "3650", "-subj", "/CN=localhost"],
      ...["-addext", names, "-keyout", join(root, "localhost.key"), "-out", join(root, "localhost.crt")],
    ],
    { stdio: "pipe" },
  );
}

async function addImage(scratch: string, base: readonly Layer[], image: Image): Promise<object> {
  const layers = [...base];
  if (Object.keys(image.files).length > 0) layers.push(await filesLayer(scratch, image.files));
  const config = JSON.stringify({
    architecture: process.arch === "arm64" ? "arm64" : "amd64",
    os: "linux",
    config: {
      Env: ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
      Entrypoint: image.entrypoint,
      Cmd: image.command ?? [],
    },
    rootfs: { type: "layers", diff_ids: layers.map(({ digest }) => `sha256:${digest}`) },
  });
  const name = createHash("sha256").update(config).digest("hex");
  mkdirSync(join(scratch, "configs"), { recursive: true });
  writeFileSync(join(scratch, "configs", `${name}.json`), config);
  return {
    Config: `configs/${name}.json`,
    RepoTags: image.names,
    Layers: layers.map(({ path }) => path),
  };
}

async function filesLayer(scratch: string, files: Readonly<Record<string, string>>): Promise<Layer> {
  const root = mkdtempSync(join(scratch, "files-"));
  for (const [at, from] of Object.entries(files)) {
    mkdirSync(dirname(join(root, at)), { recursive: true });
    copyFileSync(from, join(root, at));
  }
  return asLayer(scratch, packed(scratch, root));
}

function packed(scratch: string, root: string): string {
  const tar = join(mkdtempSync(join(scratch, "tar-")), "layer.tar");
  execFileSync("tar", ["-C", root, "--owner=0", "--group=0", "-cf", tar, "."]);
  return tar;
}

async function asLayer(scratch: string, tar: string): Promise<Layer> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(tar), hash);
  const digest = hash.digest("hex");
  const path = `layers/${digest}.tar`;
  mkdirSync(join(scratch, "layers"), { recursive: true });
  if (!existsSync(join(scratch, path))) linkSync(tar, join(scratch, path));
  return { path, digest };
}
