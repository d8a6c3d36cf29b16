// Runs upstream's end-to-end tests of Services against the test cluster and reads their results.
import { spawn } from "node:child_process";
import { createWriteStream, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { NodeCluster } from "./cluster.ts";
import { nodeNames } from "./lan.ts";

export type Outcome = "passed" | "failed" | "skipped";

/** Outcome by the name of the spec. */
export type Results = ReadonlyMap<string, { readonly outcome: Outcome; readonly message: string }>;

const groups = [
  "Services",
  "EndpointSlice",
  "EndpointSliceMirroring",
  "Networking",
  "Conntrack",
  "Traffic Distribution",
  "Proxy",
  "HostPort",
  "KubeProxy",
  "Service endpoints latency",
  ".*[Dd]ual-?[Ss]tack",
];

export const focus = String.raw`\[sig-network\] (${groups.join("|")})`;

/** Specs that do not run, by a pattern of their names. */
export const leftOut: readonly { readonly pattern: string; readonly reason: string }[] = [
  { pattern: String.raw`\[Disruptive\]`, reason: "restarts parts of the cluster" },
  { pattern: String.raw`\[Slow\]`, reason: "takes minutes each" },
  { pattern: String.raw`\[Feature:([^I]|I[^P])`, reason: "needs a feature of a provider" },
  { pattern: "SCTP", reason: "this kernel has no SCTP module" },
];

export type E2ePrograms = { readonly ginkgo: string; readonly "e2e.test": string };

export type E2eOptions = {
  readonly cluster: NodeCluster;
  readonly programs: E2ePrograms;
  /** Where the report and the output go. */
  readonly folder: string;
  readonly label: string;
  /** Names of the specs to run; all by default. */
  readonly focus?: string;
  readonly processes: number;
  readonly onLine: (line: string) => void;
};

export async function runE2e(options: E2eOptions): Promise<Results> {
  const { cluster, programs, folder, label, processes } = options;
  mkdirSync(folder, { recursive: true });
  const args = [
    ...[
      `--net=${cluster.lan.plane.path}`,
      "--",
      programs.ginkgo,
      "run",
      `--nodes=${processes}`,
      "--no-color",
    ],
    ...[`--focus=${options.focus ?? focus}`, ...leftOut.map(({ pattern }) => `--skip=${pattern}`)],
    ...["--silence-skips", "--timeout=2h", `--output-dir=${folder}`, `--junit-report=${label}.xml`],
    ...[programs["e2e.test"], "--", `--kubeconfig=${cluster.plane.admin}`, "--provider=skeleton"],
    ...[`--num-nodes=${nodeNames.length}`, "--prepull-images=false", "--dump-logs-on-failure=false"],
  ];
  await new Promise<void>((resolve, reject) => {
    const child = spawn("nsenter", args, { stdio: ["ignore", "pipe", "inherit"], cwd: folder });
    const output = createWriteStream(join(folder, `${label}.log`));
    let rest = "";
    child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) options.onLine(line);
      output.write(chunk);
    });
    child.once("error", reject);
    // It exits with 1 when a spec fails: the report lists it.
    child.once("close", () => output.end(resolve));
  });
  const results = readResults(readFileSync(join(folder, `${label}.xml`), "utf8"));
  if (results.size === 0) throw new Error(`upstream's tests did not run: ${join(folder, `${label}.log`)}`);
  return results;
}

/** Results in a JUnit report as ginkgo writes it. */
export function readResults(xml: string): Results {
  const results = new Map<string, { outcome: Outcome; message: string }>();
  for (const [, attributes = "", body = ""] of xml.matchAll(
    /<testcase ([^>]*?)(?:\/>|>([\s\S]*?)<\/testcase>)/g,
  )) {
    const name = plain(/\bname="([^"]*)"/.exec(attributes)?.[1] ?? "");
    const status = /\bstatus="([^"]*)"/.exec(attributes)?.[1] ?? "";
    if (!name.startsWith("[It] ")) continue;
    const message = plain(/<(?:failure|error|skipped)\b[^>]*message="([^"]*)"/.exec(body)?.[1] ?? "");
    const outcome =
      status === "passed" ? "passed" : status === "skipped" || status === "pending" ? "skipped" : "failed";
    // A spec that was never selected is in the report too, without a reason.
    if (outcome === "skipped" && message.replace(/^skipped\b[ -]*/, "") === "") continue;
    results.set(name.slice("[It] ".length), { outcome, message });
  }
  return results;
}

function plain(text: string): string {
  return text
    .replace(/&#x?([0-9A-Fa-f]+);/g, (whole, digits: string) =>
      String.fromCodePoint(Number.parseInt(digits, whole.includes("x") ? 16 : 10)),
    )
    .replace(/&quot;/g, '"')
    .replace(/&apos;/g, "'")
    .replace(/&lt;/g, "<")
    .replace(/&gt;/g, ">")
    .replace(/&amp;/g, "&");
}
