// `turnout doctor migrate`: what a change of mode would affect on a node, and what to do about it.

import { readFileSync } from "node:fs";
import { decodeConfig } from "../../config/file/decode.ts";
import type { FileConfig } from "../../config/file/fields.ts";
import type { ModeName } from "../../config/modes.ts";
import { type NodeRemark, printReport } from "../../explain/migrate/print.ts";
import { fileOf, type Report, reportOf } from "../../explain/migrate/report.ts";
import { readLocalAddresses } from "../../host/local-addresses.ts";
import { fileProblems, loadNode, noServices, unreadable } from "../../inspect/node-view.ts";
import { readinessFor } from "../../inspect/readiness.ts";
import { isPlayground, placeOf, resolveTarget, type Target } from "../../inspect/target.ts";
import { modeNames } from "../../inspect/target-config.ts";
import { UsageError } from "../../inspect/usage-error.ts";
import { modes } from "../../modes/index.ts";
import { command } from "../command.ts";
import type { CommandSpec, Values } from "../flags.ts";
import { clusterCidrFlag, nodeFlag, outputFlag, sourceFlag } from "../target-flags.ts";

export const doctorSpec = {
  name: "doctor",
  summary: "check what a change of proxy mode would affect",
  usage: ["migrate --to=MODE [--from=MODE] [flags]"],
  args: [
    {
      name: "migrate",
      choices: ["migrate"],
      description:
        "report what another mode would change on one node: packets that are handled differently, how endpoints are chosen, settings, the node itself",
    },
  ],
  flags: [
    {
      name: "from",
      value: "MODE",
      choices: modeNames,
      example: "ipvs",
      fallback: "the mode of --config or of the daemon",
      description: "current mode",
    },
    {
      name: "to",
      value: "MODE",
      choices: modeNames,
      example: "nftables",
      fallback: "nftables",
      description: "new mode",
    },
    {
      name: "config",
      value: "FILE",
      example: "/var/lib/kube-proxy/config.conf",
      fallback: "that of the daemon, else the defaults",
      description: "kube-proxy's configuration file",
    },
    sourceFlag,
    nodeFlag,
    clusterCidrFlag,
    {
      name: "live",
      description:
        "check this machine, or the playground's node, as well: kernel, programs, addresses, sysctls",
    },
    outputFlag,
  ],
  exitCodes: {
    0: "nothing changes",
    1: "the check failed",
    3: "something changes",
    4: "the node cannot run the new mode",
  },
  examples: [
    "turnout doctor migrate --from=ipvs --to=nftables --source=files:examples/shop --node=node-a",
    "turnout doctor migrate --config=/var/lib/kube-proxy/config.conf --source=api --live",
  ],
} as const satisfies CommandSpec;

type DoctorFlags = Values<typeof doctorSpec.flags>;

export const doctor = command(doctorSpec, async ({ flags, args: [subject] }, world, signal) => {
  if (subject !== "migrate") throw new UsageError(subjectRequired(subject));
  const { live = false, output = "text", to = "nftables" } = flags;
  const target = await resolveTarget(flags, world);
  const migration = { from: fromMode(flags, target), to, node: target.node };
  if (migration.from === to) throw new UsageError(`--from and --to are both ${to}`);
  const view = await loadNode(target, signal);
  const [broken] = unreadable(view);
  if (broken !== undefined) throw new UsageError(`cannot compare the modes: ${broken}`);
  world.stderr(`${noServices(view)}${fileProblems(view)}`);
  const facts = live ? { localAddresses: await readLocalAddresses(placeOf(target)) } : {};
  const ends = { ...migration, from: modes[migration.from], to: modes[to] };
  const report = reportOf(ends, fileConfig(flags, target), view.snapshot, facts);
  const remarks = live ? await remarksOn(report, target) : null;
  world.stdout(output === "json" ? asJson(report, remarks) : printReport(report, remarks));
  return codeOf(report, remarks ?? []);
});

function subjectRequired(subject: string | undefined): string {
  const cause =
    subject === undefined ? "a subject is required" : `unexpected argument ${JSON.stringify(subject)}`;
  return `${cause}; example: turnout doctor migrate --to=nftables`;
}

/** The whole file, including the settings of modes other than its own. */
function fileConfig(flags: DoctorFlags, { config }: Target): FileConfig {
  const text = flags.config ? readFileSync(flags.config, "utf8") : null;
  const decoded = text === null ? null : decodeConfig(text, flags.config!);
  const file = decoded?.ok ? decoded.config : fileOf(config);
  const clusterCIDR = flags["cluster-cidr"];
  return clusterCIDR ? { ...file, detectLocalMode: "ClusterCIDR", clusterCIDR } : file;
}

function fromMode(flags: DoctorFlags, { config }: Target): ModeName {
  if (flags.from !== undefined) return flags.from;
  const { source = "daemon" } = flags;
  if (flags.config || isPlayground(source) || source.startsWith("daemon")) return config.mode;
  throw new UsageError("--from or --config is required, for example --from=ipvs");
}

async function remarksOn({ from, to }: Report, target: Target): Promise<NodeRemark[]> {
  const { blocks, remarks } = await readinessFor(from, to, placeOf(target));
  return [
    ...blocks.map((message) => ({ kind: "blocks" as const, message })),
    ...remarks.map((message) => ({ kind: "remark" as const, message })),
  ];
}

function asJson(report: Report, thisNode: readonly NodeRemark[] | null): string {
  return `${JSON.stringify({ ...report, ...(thisNode === null ? {} : { thisNode }) }, null, 2)}\n`;
}

function codeOf({ packets, habits, settings }: Report, remarks: readonly NodeRemark[]): number {
  if (remarks.some(({ kind }) => kind === "blocks")) return 4;
  return packets.length + habits.length + settings.length + remarks.length === 0 ? 0 : 3;
}
