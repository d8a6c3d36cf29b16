// `turnout explain FROM TO`: why a packet goes where it goes, and with --live whether the kernel agrees.

import { closest } from "../../config/closest.ts";
import { decideBy } from "../../explain/node-routes.ts";
import { printTrace } from "../../explain/print.ts";
import {
  type From,
  familyOfTo,
  fromExamples,
  parseFrom,
  parseTo,
  toExamples,
} from "../../explain/question.ts";
import { questionOf, type Sender } from "../../explain/resolve.ts";
import { traceOf } from "../../explain/trace.ts";
import { lookAtKernel, printKernel } from "../../inspect/kernel-view.ts";
import {
  askApi,
  fileProblems,
  loadPart,
  resolveTarget,
  type Target,
  targetFlags,
  targetHelp,
  targetSwitches,
  unknownNode,
} from "../../inspect/target.ts";
import { UsageError } from "../../inspect/usage-error.ts";
import { type Family, familyOf } from "../../model/address.ts";
import { SourceError } from "../../sources/source.ts";
import { readArguments } from "../arguments.ts";
import { outputOf } from "../output.ts";
import { withUsageErrors } from "../usage-error.ts";
import type { CommandWorld } from "./kube-proxy.ts";

export const explainHelp = `turnout explain: why a packet goes where it goes

Usage: turnout explain FROM TO [--source=…] [--node=NAME] [--mode=nftables] [--live] [-o json]

  FROM        ${fromExamples}
  TO          ${toExamples}
${targetHelp}  --live      compares each step with what the kernel of the node holds, in userspace mode also with the relays of its
              daemon, and shows tracked connections
  -o          text (default) or json

Examples:
  turnout explain outside nodeport:30080 --source=files:examples/shop --node=node-a
  turnout explain web-1 svc/shop/stock --source=playground --live
`;

const instead = "say who sends and where to, for example: turnout explain outside:203.0.113.9 nodeport:30080";

export function explain(argv: readonly string[], world: CommandWorld, signal: AbortSignal): Promise<number> {
  return withUsageErrors("explain", world, async () => {
    const { given, on, words, help } = readArguments(argv, {
      flags: targetFlags,
      switches: ["live", ...targetSwitches],
      words: { most: 2, instead },
    });
    if (help) {
      world.stdout(explainHelp);
      return 0;
    }
    const live = on.has("live");
    const [fromText, toText] = words;
    if (fromText === undefined || toText === undefined) throw new UsageError(instead);
    const output = outputOf(given);
    const [from, to] = [parseFrom(fromText), parseTo(toText)];
    if (!from.ok) throw new UsageError(from.reason);
    if (!to.ok) throw new UsageError(to.reason);

    const first = await resolveTarget({ given, on }, world);
    const { sender, node } = await senderOf(from.value, familyOfTo(to.value), first, signal);
    const look =
      given.node === undefined && node !== null ? await resolveTarget({ given, on }, world, node) : first;
    const asked = { from: sender, to: to.value, toText };
    const { seen, whole } = await loadPart(look, asked, signal, live);
    const { routes } = seen;
    world.stderr(await unknownNode(seen));
    world.stderr(fileProblems(seen));
    const question = questionOf(asked.from, asked.to, routes);
    if (!question.ok) throw new UsageError(await betterReason(question.reason));
    const { family, packet } = question.value;
    if (sender.kind === "pod" && packet.from.origin === "elsewhere")
      world.stderr(
        `! ${sender.address} is no pod of ${look.node}: the node it runs on sees its packets first; say --node=NAME\n`,
      );
    const told = traceOf(decideBy[look.config.mode](routes[family], packet), routes[family], packet);
    const kernel = live ? await lookAtKernel(look, routes[family], packet, signal) : null;
    if (output === "json")
      world.stdout(
        `${JSON.stringify({ mode: look.config.mode, ...told, ...(kernel === null ? {} : { kernel }) }, null, 2)}\n`,
      );
    else world.stdout(`${printTrace(told)}${kernel === null ? "" : printKernel(kernel)}`);
    return kernel?.agrees === false ? 3 : 0;

    /** Who knows all Services knows which of them was meant. */
    async function betterReason(reason: string): Promise<string> {
      const all = await whole().catch(() => null);
      const again = all === null ? null : questionOf(asked.from, asked.to, all.routes);
      return again?.ok === false ? again.reason : reason;
    }
  });
}

/** A name is looked up: a Node, or a Pod and the node it runs on. */
async function senderOf(
  from: From,
  family: Family | null,
  look: Target,
  signal: AbortSignal,
): Promise<{ sender: Sender; node: string | null }> {
  if (from.kind !== "named") return { sender: from, node: null };
  const { namespace, name } = from;
  if (namespace === null && name === look.node) return { sender: { kind: "node" }, node: name };
  const nodes = await itemsAt("/api/v1/nodes");
  if (namespace === null && nodes?.some(({ metadata }) => metadata?.name === name))
    return { sender: { kind: "node" }, node: name };
  const pods = await itemsAt("/api/v1/pods");
  if (pods === null)
    throw new UsageError(
      `files do not tell the address of pod ${name}: say for example pod:10.0.1.5; if it is a node, say node and --node=${name}`,
    );
  const found = pods.filter(
    ({ metadata }) => metadata?.name === name && (namespace === null || metadata.namespace === namespace),
  );
  if (found.length > 1) {
    const places = found.map(({ metadata }) => `pod:${metadata?.namespace}/${name}`).join(" or ");
    throw new UsageError(`there are several pods ${name}: say ${places}`);
  }
  const { podIP, podIPs = [] } = found[0]?.status ?? {};
  const address = podIPs.map(({ ip }) => ip).find((ip) => familyOf(ip) === family) ?? podIP;
  if (address === undefined) throw new UsageError(nobody(from, [...pods, ...(nodes ?? [])]));
  return { sender: { kind: "pod", address }, node: found[0]?.spec?.nodeName ?? null };

  async function itemsAt(path: string): Promise<readonly Item[] | null> {
    try {
      return itemsOf(await askApi(look, path, signal));
    } catch (error) {
      if (!(error instanceof SourceError)) throw error;
      throw new UsageError(
        `cannot look up ${name}: ${error.message}; say its address, for example pod:10.0.1.5`,
      );
    }
  }
}

function nobody({ namespace, name }: Extract<From, { kind: "named" }>, there: readonly Item[]): string {
  const asked = namespace === null ? name : `${namespace}/${name}`;
  const near = closest(
    name,
    there.map(({ metadata }) => metadata?.name ?? ""),
  );
  const hint = near === null || near === asked ? "" : `; did you mean ${near}?`;
  return `there is no node and no running pod ${JSON.stringify(asked)}${hint}`;
}

type Item = {
  readonly metadata?: { readonly name?: string; readonly namespace?: string };
  readonly spec?: { readonly nodeName?: string };
  readonly status?: { readonly podIP?: string; readonly podIPs?: readonly { readonly ip: string }[] };
};

function itemsOf(list: unknown): readonly Item[] | null {
  return list === null ? null : ((list as { items?: Item[] }).items ?? []);
}
