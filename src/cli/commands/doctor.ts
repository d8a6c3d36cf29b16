// `turnout doctor`: checks a node; with `migrate`, what a change of mode would affect on it; with `flows`, the flows it tracks.

import { readFileSync } from "node:fs";
import { decodeConfig } from "../../config/file/decode.ts";
import type { FileConfig } from "../../config/file/fields.ts";
import type { ModeName } from "../../config/modes.ts";
import { type NodeRemark, printReport } from "../../explain/migrate/print.ts";
import { fileOf, type Report, reportOf } from "../../explain/migrate/report.ts";
import { readLocalAddresses } from "../../host/local-addresses.ts";
import { exitCodeOf, printChecks } from "../../inspect/node-checks.ts";
import { fileProblems, loadNode, noServices, unreadable } from "../../inspect/node-view.ts";
import { readinessFor } from "../../inspect/readiness.ts";
import { isPlayground, placeOf, resolveTarget, type Target } from "../../inspect/target.ts";
import { modeNames } from "../../inspect/target-config.ts";
import { UsageError } from "../../inspect/usage-error.ts";
import { modes } from "../../modes/index.ts";
import { flowClasses } from "../../traffic/classify.ts";
import { command } from "../command.ts";
import type { CommandSpec, Values } from "../flags.ts";
import { doctorFlows } from "../flows/doctor.ts";
import { checkNode } from "../node-check.ts";
import { clusterCidrFlag, nodeFlag, outputFlag, sourceFlag } from "../target-flags.ts";
import type { CommandWorld } from "./kube-proxy.ts";

export const doctorSpec = {
  name: "doctor",
  summary: "check a node, the flows it tracks, or what a change of proxy mode would affect on it",
  usage: [
    "[--source=SOURCE] [-o FORMAT]",
    "flows [--wait=SECONDS] [--delete=CLASS[,CLASS]] [--reset-tcp=IP:PORT] [flags]",
    "migrate --to=MODE [--from=MODE] [flags]",
  ],
  args: [
    {
      name: "SUBJECT",
      choices: ["flows", "migrate"],
      description:
        "optional; flows: report tracked flows that lead nowhere, and what fills the conntrack table; migrate: report what another mode would change on one node: packets that are handled differently, how endpoints are chosen, settings, the node itself",
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
    {
      name: "delete",
      value: "CLASSES",
      suggestions: flowClasses,
      example: "endpoint-gone,service-deleted",
      description:
        "delete the conntrack entries of these classes of flows: endpoint-gone, service-deleted, not-eligible, untranslated, unreplied; established TCP and SCTP connections are kept",
    },
    {
      name: "reset-tcp",
      value: "IP:PORT",
      example: "10.0.1.5:8080",
      description:
        "also delete the entries of established TCP connections to this endpoint, which must no longer exist; a client is reset when it sends next and another endpoint is ready",
    },
    {
      name: "wait",
      value: "SECONDS",
      example: "30",
      fallback: "5",
      description:
        "time between two readings of the table, which show whether a client keeps an unreplied flow alive; 0: one reading",
    },
    outputFlag,
  ],
  exitCodes: {
    0: "no findings, no changes, or all findings were deleted",
    1: "the node cannot be checked",
    3: "warnings, findings or changes",
    4: "a check failed, the conntrack table is full, or the node cannot run the new mode",
  },
  notes: [
    "Without an argument it checks the node of the daemon: health, kernel, modules, sysctls, conntrack fill, Syncs, drift, watches, objects that the kernel refuses, and Problems. It changes nothing. doctor flows changes nothing without --delete or --reset-tcp.",
  ],
  examples: [
    "turnout doctor -o json",
    "turnout doctor flows --delete=endpoint-gone",
    "turnout doctor migrate --from=ipvs --to=nftables --source=files:examples/shop --node=node-a",
    "turnout doctor migrate --config=/var/lib/kube-proxy/config.conf --source=api --live",
  ],
} as const satisfies CommandSpec;

type DoctorFlags = Values<typeof doctorSpec.flags>;

export const doctor = command(doctorSpec, async ({ flags, args: [subject] }, world, signal) => {
  refuseForeignFlags(subject, flags);
  if (subject === undefined) return checkup(flags, world);
  if (subject === "flows") return doctorFlows(flags, world, signal);
  if (subject !== "migrate")
    throw new UsageError(
      `unexpected argument ${JSON.stringify(subject)}; example: turnout doctor migrate --to=nftables`,
    );
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

/** Flags of one form of the command that would be ignored by another. */
const ofFlows: readonly string[] = ["delete", "reset-tcp", "wait"];
const ofMigrate: readonly string[] = ["from", "to"];
const ofBoth: readonly string[] = ["config", "cluster-cidr"];

function refuseForeignFlags(subject: string | undefined, flags: DoctorFlags): void {
  const foreign = {
    flows: ofMigrate,
    migrate: ofFlows,
    "": [...ofFlows, ...ofMigrate, ...ofBoth],
  }[subject ?? ""];
  const [name] = Object.keys(flags).filter((each) => foreign?.includes(each));
  if (name === undefined) return;
  const form = ofFlows.includes(name) ? "flows" : "migrate";
  throw new UsageError(`--${name} requires an argument: turnout doctor ${form} --${name}=…`);
}

async function checkup(flags: DoctorFlags, world: CommandWorld): Promise<number> {
  const { source, node, output = "text" } = flags;
  if (source !== undefined && !isPlayground(source) && !/^daemon(:|$)/.test(source))
    throw new UsageError(`cannot check ${source}: --source must be daemon, daemon:SOCKET or playground`);
  const missing = world.missingRights();
  if (missing !== null) throw new UsageError(`cannot check this node: ${missing}`);
  const target = await resolveTarget({ source, node, live: true }, world);
  const { status, checks } = await checkNode(target, world.clock.wall());
  const { mode, version } = status;
  world.stdout(
    output === "json"
      ? `${JSON.stringify({ node: status.node, mode, version, checks }, null, 2)}\n`
      : printChecks(status, checks),
  );
  return exitCodeOf(checks);
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
