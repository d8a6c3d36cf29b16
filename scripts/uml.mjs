// Judges ipvs mode on a machine without IPVS: boots a user-mode kernel that sends the packets of the scenarios.
// usage: node scripts/uml.mjs [SCENARIO+SCENARIO… [PROGRAM]]   by default all scenarios and the real kube-proxy
import { spawn } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { build } from "esbuild";

const root = join(import.meta.dirname ?? new URL(".", import.meta.url).pathname, "..");
const minutes = 90;

const missing = ["/usr/bin/linux", "/usr/bin/busybox", "/usr/sbin/ipset"].filter((file) => !existsSync(file));
if (missing.length > 0) {
  console.error(
    `uml: no ${missing.join(", ")}: apt-get install user-mode-linux busybox-static ipset iptables kmod iproute2 conntrack`,
  );
  process.exit(1);
}
mkdirSync("/lib/modules", { recursive: true }); // the guest mounts its own modules there
const bundle = join(root, "dist", "uml.mjs");
await build({
  absWorkingDir: root,
  entryPoints: ["test/uml/judge.ts"],
  outfile: bundle,
  bundle: true,
  platform: "node",
  target: "node20",
  format: "esm",
  external: ["koffi"],
  define: { "import.meta.dirname": JSON.stringify(join(root, "test")) },
  banner: {
    js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);',
  },
  logLevel: "warning",
});

const kernel = spawn(
  "timeout",
  [
    ...["-k", "5", String(minutes * 60), "linux", "mem=1024M", "rootfstype=hostfs", "rootflags=/", "ro"],
    `init=${join(root, "test", "uml", "init.sh")}`,
    `BUNDLE=${bundle}`,
    `ARGUMENTS=${process.argv.slice(2).join(",")}`,
    ...["con=null", "con0=fd:0,fd:1", "quiet"],
  ],
  { stdio: ["ignore", "pipe", "inherit"] },
);
let isRight = false;
for await (const line of createInterface({ input: kernel.stdout })) {
  if (line.startsWith("UML-RESULT ok")) isRight = true;
  else if (!/selinux|mmapper|ubd device|no destination available|System halted/i.test(line))
    console.log(line);
}
process.exitCode = isRight ? 0 : 1;
