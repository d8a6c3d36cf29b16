// Provides the real Kubernetes programs that Turnout is measured against: builds them once into a cache.
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { basename, join } from "node:path";

const usage = `usage: npm run assets [-- PROGRAM… | --node]

Provides kube-proxy, kube-apiserver, kube-controller-manager, kubectl and etcd for the cluster, differential
and side-by-side tests, and helm and actionlint for those of the chart and the workflows; with --node also kubelet,
kube-scheduler, coredns and upstream's end-to-end tests, for npm run test:node. Takes the former from the
folder named by KUBEBUILDER_ASSETS when that is set; otherwise builds them from the Go module registry into
\${XDG_CACHE_HOME:-~/.cache}/turnout/assets: needs Go 1.26 or newer, and some minutes, once.`;

// Newest first. Written down because the registry's own list of versions is incomplete.
const releases = ["1.37.2", "1.37.1", "1.37.0"];

// etcd comes in the version that this Kubernetes release is tested with: older ones (Debian has 3.4) cannot report
// the progress of watches, without which the API server's cache never counts as fresh.
const packages = {
  "kube-proxy": "k8s.io/kubernetes/cmd/kube-proxy",
  "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
  "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
  kubectl: "k8s.io/kubernetes/cmd/kubectl",
  etcd: "go.etcd.io/etcd/server/v3",
};

// For `npm run test:node`, which has them built: the rest of a cluster, and upstream's tests with the programs in their images.
const nodePackages = {
  kubelet: "k8s.io/kubernetes/cmd/kubelet",
  "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
  "e2e.test": "k8s.io/kubernetes/test/e2e",
  ginkgo: "github.com/onsi/ginkgo/v2/ginkgo",
  agnhost: "k8s.io/kubernetes/test/images/agnhost",
  "regression-issue-74839": "k8s.io/kubernetes/test/images/regression-issue-74839",
};
const nodeTools = { coredns: "github.com/coredns/coredns@v1.15.0" };

// Tools that check what is deployed and released: modules of their own, each in a fixed version.
const tools = {
  helm: "helm.sh/helm/v3/cmd/helm@v3.22.0",
  actionlint: "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12",
};
// The others print it with --version.
const versionArgs = {
  kubectl: ["version", "--client"],
  helm: ["version", "--template={{.Version}}"],
  actionlint: ["-version"],
  ginkgo: ["version"],
  coredns: ["-version"],
};
const home = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "turnout", "assets");

const everything = Object.keys({ ...packages, ...nodePackages, ...tools, ...nodeTools });

await main(process.argv.slice(2));

async function main(args) {
  if (args.includes("--help") || args.includes("-h")) return console.log(usage);
  const isOfKubernetes = (name) => name in packages || name in nodePackages;
  const isTool = (name) => name in tools || name in nodeTools;
  const names = args.flatMap((arg) => (arg === "--node" ? everything : [arg]));
  const unknown = names.find((name) => !isOfKubernetes(name) && !isTool(name));
  if (unknown) fail(`no such program: ${unknown}\n\n${usage}`);
  const wanted = names.length > 0 ? names : Object.keys({ ...packages, ...tools });
  if (process.env.KUBEBUILDER_ASSETS)
    return checkGiven(process.env.KUBEBUILDER_ASSETS, wanted.filter(isOfKubernetes));

  mkdirSync(home, { recursive: true });
  const missing = wanted.filter((name) => !existsSync(join(home, name)));
  const ofKubernetes = missing.filter(isOfKubernetes);
  if (ofKubernetes.length > 0) await buildAll(ofKubernetes);
  for (const name of missing.filter(isTool)) installTool(name);
  for (const name of wanted)
    print(`${name.padEnd(24)} ${versionOf(join(home, name)).padEnd(8)} ${join(home, name)}`);
}

function checkGiven(folder, wanted) {
  const missing = wanted.filter((name) => !existsSync(join(folder, name)));
  if (missing.length > 0)
    fail(`KUBEBUILDER_ASSETS is ${folder}, which lacks ${missing.join(", ")}; unset it to build them`);
  print(`using the programs in ${folder} (KUBEBUILDER_ASSETS)`);
}

async function buildAll(names) {
  requireGo();
  const release = findRelease();
  const module = join(home, "module");
  writeModule(module, release);
  for (const name of names) await buildOne(module, release, name);
  rmSync(module, { recursive: true, force: true });
}

function installTool(name) {
  requireGo();
  print(`building ${name}`);
  const { status, stderr } = spawnSync(
    "nice",
    ["-n", "15", "go", "install", "-trimpath", { ...tools, ...nodeTools }[name]],
    {
      cwd: home,
      encoding: "utf8",
      env: { ...goEnvironment(), CGO_ENABLED: "0", GOBIN: home },
    },
  );
  if (status !== 0) fail(`cannot build ${name}: ${stderr.trim().split("\n").at(-1)}`);
}

function requireGo() {
  const { status, stdout } = spawnSync("go", ["env", "GOVERSION"], { encoding: "utf8" });
  if (status !== 0)
    fail("cannot build: Go is not installed. Install Go 1.26 or newer, or set KUBEBUILDER_ASSETS.");
  const [, major, minor] = stdout.match(/^go(\d+)\.(\d+)/) ?? [];
  if (Number(major) === 1 && Number(minor) < 26)
    fail(`cannot build: Go 1.26 or newer is needed, ${stdout.trim()} is installed.`);
}

function findRelease() {
  const refusals = [];
  for (const release of releases) {
    print(`reading the Go module registry: Kubernetes ${release}`);
    const { stdout } = spawnSync("go", ["mod", "download", "-json", `k8s.io/kubernetes@v${release}`], {
      cwd: home,
      encoding: "utf8",
      env: goEnvironment(),
    });
    const { Dir: folder, Error: error } = JSON.parse(stdout || "{}");
    if (folder) return { version: release, folder };
    refusals.push(`  ${release}: ${(error ?? "no answer").split("\n").at(-1).trim()}`);
  }
  return fail(`cannot build: the Go module registry has no release we know:\n${refusals.join("\n")}`);
}

// k8s.io/kubernetes points at its staging modules by relative path, which only works inside its own
// repository: this module points at their releases instead, which carry the same number as v0.x.
function writeModule(folder, { version, folder: source }) {
  const upstream = readFileSync(join(source, "go.mod"), "utf8");
  const staging = [...upstream.matchAll(/^\s*(k8s\.io\/\S+) => \.\//gm)].map(([, path]) => path);
  const go = upstream.match(/^go \S+$/m)?.[0] ?? "go 1.26.0";
  const debug = upstream.match(/^godebug .+$/m)?.[0] ?? "";
  mkdirSync(folder, { recursive: true });
  const replaces = staging.map((path) => `replace ${path} => ${path} v0${version.slice(1)}`);
  writeFileSync(
    join(folder, "go.mod"),
    ["module assets", go, debug, `require k8s.io/kubernetes v${version}`, ...replaces, ""].join("\n"),
  );
  copySums(source, folder);
}

function copySums(source, folder) {
  const sums = join(source, "go.sum");
  if (existsSync(sums)) writeFileSync(join(folder, "go.sum"), readFileSync(sums));
}

async function buildOne(module, { version }, name) {
  const started = Date.now();
  const partial = join(home, `.${name}.partial`);
  // `go test` would also run vet, on all of Kubernetes.
  const build = name.endsWith(".test") ? ["test", "-c", "-vet=off"] : ["build"];
  const args = [...build, "-mod=mod", "-trimpath", "-v", `-ldflags=${versionFlags(version)}`, "-o", partial];
  let compiled = 0;
  const show = progress(() => `building ${name}: ${compiled} packages, ${seconds(started)} s`);
  const child = spawn("nice", ["-n", "15", "go", ...args, { ...packages, ...nodePackages }[name]], {
    cwd: module,
    env: { ...goEnvironment(), CGO_ENABLED: "0" },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const lastLines = [];
  child.stderr.setEncoding("utf8").on("data", (chunk) => {
    const lines = chunk.split("\n").filter(Boolean);
    compiled += lines.length;
    lastLines.push(...lines);
    lastLines.splice(0, lastLines.length - 20);
  });
  const code = await new Promise((resolve) => child.on("close", resolve));
  show.stop();
  if (code !== 0) fail(`cannot build ${name}: go exited with ${code}\n${lastLines.join("\n")}`);
  renameSync(partial, join(home, name));
  print(`built ${name} in ${seconds(started)} s`);
}

// What upstream's own build stamps into its binaries, so that `--version` and /version are right.
function versionFlags(version) {
  const [major, minor] = version.split(".");
  const stamps = { gitVersion: `v${version}`, gitMajor: major, gitMinor: minor, gitTreeState: "archive" };
  return Object.entries(stamps)
    .flatMap(([key, value]) =>
      ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"].map(
        (at) => `-X ${at}.${key}=${value}`,
      ),
    )
    .concat("-s", "-w")
    .join(" ");
}

function goEnvironment() {
  return { ...process.env, GOFLAGS: "", GOWORK: "off" };
}

function versionOf(path) {
  const args = versionArgs[basename(path)] ?? ["--version"];
  const { stdout } = spawnSync(path, args, { encoding: "utf8" });
  return (stdout ?? "").split("\n")[0].replace(/^.*?v?(\d+\.\d+\.\d+\S*).*$/, "$1");
}

// On a terminal one line that changes; elsewhere a line every 15 seconds.
function progress(text) {
  const live = process.stderr.isTTY;
  const show = () => process.stderr.write(live ? `\r\x1b[Kassets: ${text()}` : `assets: ${text()}\n`);
  const timer = setInterval(show, live ? 500 : 15_000);
  return {
    stop() {
      clearInterval(timer);
      if (live) process.stderr.write("\r\x1b[K");
    },
  };
}

function seconds(since) {
  return Math.round((Date.now() - since) / 1000);
}

function print(text) {
  console.log(`assets: ${text}`);
}

function fail(text) {
  console.error(`assets: ${text}`);
  process.exit(1);
}
