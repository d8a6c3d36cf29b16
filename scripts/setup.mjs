// Makes the machine ready: npm packages always, Debian packages with --host, those of a user-mode kernel with --guest, a browser with
// --browser, what builds and runs the image with --image, and what a node of `npm run test:node` needs with --node.
// Quick and silent when nothing is missing. The Node.js in PATH runs it, so it works with older ones (18 and up); everything else
// is run by node_modules/.bin/node.
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, readFileSync, statSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");

// For each flag: what is skipped without these tools, and command → the Debian packages that bring it.
const groups = {
  "--host": {
    purpose: "tests in network namespaces",
    tools: {
      nft: "nftables",
      iptables: "iptables",
      ip: "iproute2",
      conntrack: "conntrack",
      ipset: "ipset",
    },
  },
  // Few machines' own kernels have IPVS.
  "--guest": {
    purpose: "tests of ipvs mode in a user-mode kernel",
    tools: {
      linux: "user-mode-linux",
      busybox: "busybox-static",
      ipvsadm: "ipvsadm",
      modprobe: "kmod",
      ...(hasLargeRegisters() ? { cc: "gcc libc6-dev" } : {}),
    },
  },
  "--browser": { purpose: "tests of the page in a browser", tools: { chromium: "chromium" } },
  "--image": {
    purpose: "building the image, and tests in containers",
    tools: { mmdebstrap: "mmdebstrap", runc: "runc" },
  },
  "--node": {
    purpose: "npm run test:node",
    tools: {
      containerd: "containerd",
      runc: "runc",
      busybox: "busybox-static",
      "/usr/lib/cni/ptp": "containernetworking-plugins",
    },
  },
};

installNpmPackages();
for (const [flag, group] of Object.entries(groups))
  if (process.argv.includes(flag)) installDebianPackages(group);

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

function installDebianPackages({ purpose, tools }) {
  const missing = Object.entries(tools).filter(([command]) => !isOnPath(command));
  if (missing.length === 0) return;
  const packages = missing.flatMap(([, names]) => names.split(" "));
  if (process.getuid() !== 0 || !isOnPath("apt-get")) {
    console.log(
      `setup: cannot install ${packages.join(" ")}: needs root and apt-get; skipped without: ${purpose}`,
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
    console.log(
      `setup: cannot install ${packages.join(" ")}: apt-get failed, see above; skipped without: ${purpose}`,
    );
}

/** Those of AMX, for which the user-mode kernel needs test/uml/registers.c. */
function hasLargeRegisters() {
  return existsSync("/proc/cpuinfo") && /\bamx_tile\b/.test(readFileSync("/proc/cpuinfo", "utf8"));
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
