// `turnout doctor migrate`: what a change of mode would change on a node, for whom, and what to do about it.

import { readFileSync } from "node:fs";
import { decodeConfig } from "../../config/file/decode.ts";
import type { FileConfig } from "../../config/file/fields.ts";
import type { ModeName } from "../../config/modes.ts";
import { adviceFor, type NodeRemark, printReport } from "../../explain/migrate/print.ts";
import { fileOf, type Report, reportOf } from "../../explain/migrate/report.ts";
import { readLocalAddresses } from "../../host/local-addresses.ts";
import { readinessFor } from "../../inspect/readiness.ts";
import {
  fileProblems,
  isPlayground,
  loadNode,
  noServices,
  placeOf,
  resolveTarget,
  type Target,
  unreadable,
} from "../../inspect/target.ts";
import { knownMode, modeNames } from "../../inspect/target-config.ts";
import { alternatives, UsageError } from "../../inspect/usage-error.ts";
import { readArguments } from "../arguments.ts";
import { outputOf } from "../output.ts";
import type { OwnFlags } from "../own-flags.ts";
import { withUsageErrors } from "../usage-error.ts";
import type { CommandWorld } from "./kube-proxy.ts";

export const doctorHelp = `turnout doctor: what to know before a change

Usage: turnout doctor migrate [--from=MODE] --to=MODE [--config=FILE] [--source=…] [--node=NAME] [--live] [-o json]

  migrate     what another mode would change for the Services of a cluster, as one node sees it:
              packets that meet another fate, how endpoints are chosen, settings, the node itself

  --from      ${alternatives(modeNames)}; default: what --config or the daemon says
  --to        the same; default nftables
  --config    the configuration file of kube-proxy; without it that of the daemon, or the defaults
  --source    files:PATH[,PATH…], kubeconfig:PATH, api, a URL, playground, or daemon[:SOCKET] (default)
  --node      the node whose view it is
  --cluster-cidr  network of all pods, whatever the configuration says
  --live      looks at this machine, or at the playground's node: kernel, programs, addresses, sysctls
  -o          text (default) or json

Ends with 0 when nothing changes, with 3 when something does, with 4 when the node cannot run the new mode.

Examples:
  turnout doctor migrate --from=ipvs --to=nftables --source=files:examples/shop --node=node-a
  turnout doctor migrate --config=/var/lib/kube-proxy/config.conf --source=api --live
`;

const example = "turnout doctor migrate --to=nftables";
const flags = ["from", "to", "config", "source", "node", "cluster-cidr", "o", "output"];

export function doctor(argv: readonly string[], world: CommandWorld, signal: AbortSignal): Promise<number> {
  return withUsageErrors("doctor", world, async () => {
    const { given, on, words, help } = readArguments(argv, {
      flags,
      switches: ["live"],
      words: { most: 1, instead: `say for example: ${example}` },
    });
    if (help) {
      world.stdout(doctorHelp);
      return 0;
    }
    const [word] = words;
    if (word !== "migrate")
      throw new UsageError(
        `${word === undefined ? "" : `cannot use ${JSON.stringify(word)}; `}say what to look into: ${example}`,
      );
    const [live, output] = [on.has("live"), outputOf(given)];
    const to = knownMode("to", given.to ?? "nftables");
    const look = await resolveTarget({ given, on }, world);
    const migration = {
      from: fromOf(given, look),
      to,
      node: look.node,
    };
    if (migration.from === migration.to) throw new UsageError(`--from and --to are both ${migration.to}`);
    const seen = await loadNode(look, signal);
    const { snapshot } = seen;
    const [broken] = unreadable(seen);
    if (broken !== undefined) throw new UsageError(`cannot compare the modes: ${broken}`);
    world.stderr(`${noServices(seen)}${fileProblems(seen)}`);
    const facts = live ? { localAddresses: await readLocalAddresses(placeOf(look)) } : {};
    const report = reportOf(migration, fileFor(given, look), snapshot, facts);
    const remarks = live ? await remarksOn(report, look) : null;
    world.stdout(output === "json" ? asJson(report, remarks) : printReport(report, remarks));
    return codeOf(report, remarks ?? []);
  });
}

/** Every word of the file counts, also what it says of modes other than its own. */
function fileFor(given: OwnFlags, { config }: Target): FileConfig {
  const text = given.config ? readFileSync(given.config, "utf8") : null;
  const decoded = text === null ? null : decodeConfig(text, given.config!);
  const file = decoded?.ok ? decoded.config : fileOf(config);
  const clusterCIDR = given["cluster-cidr"];
  return clusterCIDR ? { ...file, detectLocalMode: "ClusterCIDR", clusterCIDR } : file;
}

function fromOf(given: OwnFlags, look: Target): ModeName {
  if (given.from !== undefined) return knownMode("from", given.from);
  const source = given.source ?? "daemon";
  if (given.config || isPlayground(source) || source.startsWith("daemon")) return look.config.mode;
  throw new UsageError("say from which mode, for example --from=ipvs, or --config=FILE");
}

async function remarksOn({ from, to }: Report, look: Target): Promise<NodeRemark[]> {
  const { blocks, remarks } = await readinessFor(from, to, placeOf(look));
  return [
    ...blocks.map((message) => ({ kind: "blocks" as const, message })),
    ...remarks.map((message) => ({ kind: "remark" as const, message })),
  ];
}

function asJson(report: Report, thisNode: readonly NodeRemark[] | null): string {
  const packets = report.packets.map((change) => ({ ...change, advice: adviceFor(change, report.to) }));
  return `${JSON.stringify({ ...report, packets, ...(thisNode === null ? {} : { thisNode }) }, null, 2)}\n`;
}

function codeOf({ packets, habits, settings }: Report, remarks: readonly NodeRemark[]): number {
  if (remarks.some(({ kind }) => kind === "blocks")) return 4;
  return packets.length + habits.length + settings.length + remarks.length === 0 ? 0 : 3;
}
