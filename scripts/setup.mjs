// Makes the machine ready: npm packages always, Debian packages with --host, those of a user-mode kernel with --guest, and what
// builds the image with --image.
// Quick and silent when nothing is missing. The Node.js in PATH runs it, so it works with older ones (18 and up); everything else
// is run by node_modules/.bin/node.
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, readFileSync, statSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");

// command → the Debian package that brings it
const hostTools = {
  nft: "nftables",
  iptables: "iptables",
  ip: "iproute2",
  conntrack: "conntrack",
  ipset: "ipset",
};

// What a user-mode kernel needs besides, for the tests of ipvs mode: few machines' own kernels have IPVS.
const guestTools = {
  linux: "user-mode-linux",
  busybox: "busybox-static",
  ipvsadm: "ipvsadm",
  modprobe: "kmod",
};

const imageTools = { mmdebstrap: "mmdebstrap" };

// For the nodes of `npm run test:node`.
const nodeTools = {
  containerd: "containerd",
  runc: "runc",
  busybox: "busybox-static",
  "/usr/lib/cni/ptp": "containernetworking-plugins",
};

installNpmPackages();
if (process.argv.includes("--host")) installDebianPackages(hostTools);
if (process.argv.includes("--guest")) installDebianPackages(guestTools);
if (process.argv.includes("--image")) installDebianPackages(imageTools);
if (process.argv.includes("--node")) installDebianPackages(nodeTools);

function installNpmPackages() {
  const lock = join(root, "package-lock.json");
  const stamp = join(root, "node_modules", ".turnout-installed");
  if (
    existsSync(stamp) &&
    readFileSync(stamp, "utf8") === String(statSync(lock).size) &&
    statSync(stamp).mtimeMs >= statSync(lock).mtimeMs
  )
    return;
  console.log("setup: installing npm packages");
  // Exactly the locked packages; none of their scripts runs, since this may be root.
  const { status } = spawnSync(
    "npm",
    ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"],
    {
      cwd: root,
      stdio: ["ignore", 2, 2],
    },
  );
  if (status !== 0) fail("cannot install npm packages; see above. Is the npm registry reachable?");
  ensureNode();
  writeFileSync(stamp, String(statSync(lock).size));
  const later = new Date();
  utimesSync(stamp, later, later);
}

/** Where the registry has no Node.js for the platform, the one that runs this takes its place. */
function ensureNode() {
  const node = join(root, "node_modules", ".bin", "node");
  if (existsSync(node)) return;
  if (Number.parseInt(process.versions.node, 10) < 26)
    fail(
      `no package of Node.js 26 for ${process.platform}-${process.arch}: install Node.js 26 or newer and try again`,
    );
  symlinkSync(process.execPath, node);
}

function installDebianPackages(tools) {
  const missing = Object.entries(tools).filter(([command]) => !isOnPath(command));
  if (missing.length === 0) return;
  const packages = missing.map(([, name]) => name);
  if (process.getuid() !== 0 || !isOnPath("apt-get")) {
    console.log(
      `setup: not installed (needs root and apt-get): ${packages.join(" ")}; what needs them will be skipped`,
    );
    return;
  }
  console.log(`setup: installing Debian packages ${packages.join(" ")}`);
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  spawnSync("apt-get", ["update", "-qq"], { stdio: ["ignore", "ignore", "ignore"], env });
  const { status } = spawnSync("apt-get", ["install", "-y", "-qq", "--no-install-recommends", ...packages], {
    stdio: ["ignore", "ignore", 2],
    env,
  });
  if (status !== 0)
    console.log(`setup: could not install ${packages.join(" ")}; what needs them will be skipped`);
}

function isOnPath(command) {
  try {
    execFileSync("sh", ["-c", 'command -v "$1" >/dev/null', "sh", command], {
      env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` },
    });
    return true;
  } catch {
    return false;
  }
}

function fail(message) {
  console.error(`setup: ${message}`);
  process.exit(1);
}
