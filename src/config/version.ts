// The release of Kubernetes whose kube-proxy this program replaces, and how `--version` may change what it reports.
import { type Parsed, parsed, refused } from "./units/parsed.ts";

export const release = { major: 1, minor: 37, patch: 1 };

/** The format of vendor builds: the release, then the vendor. */
export function gitVersion(turnoutVersion: string): string {
  return `v${release.major}.${release.minor}.${release.patch}+turnout.${turnoutVersion}`;
}

/** What `--version=raw` prints. */
export function rawVersion(reported: string, platform: string, runtime: string): string {
  const facts: readonly (readonly [string, string])[] = [
    ["Major", String(release.major)],
    ["Minor", String(release.minor)],
    ["EmulationMajor", ""],
    ["EmulationMinor", ""],
    ["MinCompatibilityMajor", ""],
    ["MinCompatibilityMinor", ""],
    ["GitVersion", reported],
    ["GitCommit", ""],
    ["GitTreeState", ""],
    ["BuildDate", "1970-01-01T00:00:00Z"],
    ["GoVersion", ""],
    ["Compiler", runtime],
    ["Platform", platform],
  ];
  return `version.Info{${facts.map(([name, value]) => `${name}:${JSON.stringify(value)}`).join(", ")}}`;
}

/** A version to report instead of our own must be of the same release. */
export function parseReportedVersion(text: string): Parsed<string> {
  const match =
    /^v(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$/.exec(text);
  if (match === null) return refused(`${JSON.stringify(text)} is not a semantic version like v1.37.1-1`);
  const own = [release.major, release.minor, release.patch];
  const same = own.every((part, i) => match[i + 1] === String(part));
  return same ? parsed(text) : refused(`${JSON.stringify(text)} must be a version of v${own.join(".")}`);
}
