// Builds the image's base: unmodified Debian packages, without documentation and translations.
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export const suite = "bookworm";

// What the programs and Node.js use, besides Debian's essential packages. kube-proxy's image has the first four too.
const packages = ["iptables", "ipset", "kmod", "nftables", "libatomic1", "libstdc++6", "usr-is-merged"];

// Licenses stay.
const dpkgOptions = [
  "path-exclude=/usr/share/doc/*",
  "path-include=/usr/share/doc/*/copyright",
  "path-exclude=/usr/share/info/*",
  "path-exclude=/usr/share/locale/*",
  "path-exclude=/usr/share/man/*",
];

/**
 * The base as a tar archive, its packages, and the times of the package lists they are from. The archive depends on the
 * packages alone: it has no time, and neither mirror, host name nor resolver of this machine.
 */
export function debianBase(folder, snapshot) {
  const out = join(folder, "debian");
  const archive = join(folder, "base.tar");
  mkdirSync(out, { recursive: true });
  writeFileSync(join(folder, "pin"), "Package: usrmerge\nPin: release *\nPin-Priority: -1\n");
  const { status, error, stderr } = spawnSync(
    "mmdebstrap",
    [...options(folder, out), suite, archive, ...mirrors(snapshot)],
    {
      encoding: "utf8",
      env: { ...process.env, SOURCE_DATE_EPOCH: "0" },
      maxBuffer: 2 ** 26,
    },
  );
  if (error) throw new Error(`cannot run mmdebstrap: ${error.message}; install the package mmdebstrap`);
  if (status !== 0) throw new Error(`cannot install Debian packages:\n${lastLines(stderr)}`);
  const content = readFileSync(archive);
  rmSync(archive);
  return {
    content,
    packages: installedIn(readFileSync(join(out, "status"), "utf8")),
    snapshot: newestDate(readFileSync(join(out, "releases"), "utf8")),
  };
}

function options(folder, out) {
  return [
    "--variant=essential",
    "--format=tar",
    `--include=${packages.join(",")}`,
    ...dpkgOptions.map((option) => `--dpkgopt=${option}`),
    // usrmerge would bring all of Perl to merge directories that this hook creates merged.
    "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr",
    `--setup-hook=copy-in ${join(folder, "pin")} /etc/apt/preferences.d`,
    '--customize-hook=rm "$1"/etc/apt/preferences.d/pin "$1"/etc/apt/sources.list',
    '--customize-hook=rm -f "$1"/etc/hostname "$1"/etc/resolv.conf',
    '--customize-hook=cat "$1"/var/lib/apt/lists/*Release >"$1"/releases',
    `--customize-hook=copy-out /releases /var/lib/dpkg/status ${out}`,
    '--customize-hook=rm "$1"/releases',
    // The runtime mounts its own.
    "--skip=output/dev",
  ];
}

/** Without a snapshot: the mirrors and suites that mmdebstrap knows, with security updates. */
function mirrors(snapshot) {
  if (snapshot === undefined) return [];
  const line = (archive, name) =>
    `deb [check-valid-until=no] http://snapshot.debian.org/archive/${archive}/${snapshot} ${name} main`;
  return [
    line("debian", suite),
    line("debian", `${suite}-updates`),
    line("debian-security", `${suite}-security`),
  ];
}

function installedIn(status) {
  const field = (text, name) => text.match(new RegExp(`^${name}: (.*)$`, "m"))?.[1];
  return status
    .split("\n\n")
    .filter((text) => field(text, "Status") === "install ok installed")
    .map((text) => ({
      name: field(text, "Package"),
      version: field(text, "Version"),
      architecture: field(text, "Architecture"),
    }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** As snapshot.debian.org writes times. */
function newestDate(releases) {
  const times = [...releases.matchAll(/^Date: (.*)$/gm)].map(([, date]) => Date.parse(date));
  return `${new Date(Math.max(...times)).toISOString().replace(/[-:]|\.\d+/g, "")}`;
}

function lastLines(text) {
  return text.trimEnd().split("\n").slice(-15).join("\n");
}
