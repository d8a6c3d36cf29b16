// `turnout explain FROM TO`: what happens to a packet and why; with --live, whether the kernel agrees.

import { closest } from "../../config/closest.ts";
import { type Parsed, parsed } from "../../config/units/parsed.ts";
import { printTrace } from "../../explain/print.ts";
import {
  type From,
  familyOfTo,
  fromExamples,
  parseFrom,
  parseTo,
  type To,
  toExamples,
} from "../../explain/question.ts";
import { questionOf, type Sender } from "../../explain/resolve.ts";
import { trace } from "../../explain/trace.ts";
import { targetAt } from "../../inspect/history.ts";
import { printKernel, readKernelView } from "../../inspect/kernel-view.ts";
import { fileProblems, loadPart, type PartialView, unknownNode } from "../../inspect/node-view.ts";
import { getFromApi, kernelOf, resolveTarget, type Target } from "../../inspect/target.ts";
import { UsageError } from "../../inspect/usage-error.ts";
import { type Family, familyOf } from "../../model/address.ts";
import { modes } from "../../modes/index.ts";
import { SourceError } from "../../sources/source.ts";
import { command } from "../command.ts";
import type { CommandSpec } from "../flags.ts";
import { parseMoment } from "../moment.ts";
import { atFlag, namespaceFlag, outputFlag, targetFlags } from "../target-flags.ts";

export const explainSpec = {
  name: "explain",
  summary: "explain what happens to a packet, and why",
  usage: ["FROM TO [flags]"],
  args: [
    { name: "FROM", description: fromExamples },
    { name: "TO", description: toExamples },
  ],
  flags: [
    namespaceFlag,
    ...targetFlags,
    atFlag,
    {
      name: "live",
      description:
        "compare each step with the rules in the node's kernel, in userspace mode also with the relays of its daemon, and print conntrack entries",
    },
    outputFlag,
  ],
  exitCodes: { 0: "explained", 1: "the question cannot be answered", 3: "the kernel differs (with --live)" },
  examples: [
    "turnout explain outside nodeport:30080 --source=files:examples/shop --node=node-a",
    "turnout explain web-1 svc/stock -n shop --source=playground --live",
    "turnout explain outside nodeport:30080 --at=10:41",
  ],
} as const satisfies CommandSpec;

export const explain = command(explainSpec, async ({ flags, args: [fromText, toText] }, world, signal) => {
  const { live = false, output = "text" } = flags;
  if (live && flags.at !== undefined)
    throw new UsageError("--at and --live cannot be combined: the kernel has no past");
  if (fromText === undefined || toText === undefined)
    throw new UsageError(
      "FROM and TO are required, for example: turnout explain outside:203.0.113.9 nodeport:30080",
    );
  const [from, to] = [parseFrom(fromText), inNamespace(parseTo(toText), flags.namespace)];
  if (!from.ok) throw new UsageError(from.reason);
  if (!to.ok) throw new UsageError(to.reason);

  const first = await resolveTarget(flags, world);
  const { sender, node } = await senderOf(from.value, to.value, flags.namespace ?? null, first, signal);
  const isNodeOpen = flags.node === undefined && node !== null;
  const current = isNodeOpen ? await resolveTarget(flags, world, node) : first;
  const target =
    flags.at === undefined
      ? current
      : targetAt(current, flags.source, parseMoment(flags.at, world.clock.wall(), "--at"));
  const { view, whole } = await loadPart(target, { from: sender, to: to.value, toText }, signal, live);
  const { routes } = view;
  world.stderr(await unknownNode(view));
  world.stderr(fileProblems(view));
  const question = questionOf(sender, to.value, routes);
  if (!question.ok) throw new UsageError(await betterReason(question.reason, sender, to.value, whole));
  const { family, packet } = question.value;
  if (sender.kind === "pod" && packet.from.origin === "elsewhere")
    world.stderr(
      `! ${sender.address} is not a pod of ${target.node}; its own node handles its packets first: use --node=NAME\n`,
    );
  const { mode } = target.config;
  const found = trace(modes[mode], routes[family], packet);
  const kernel = live ? await readKernelView(kernelOf(target), routes[family], packet, signal) : null;
  if (output === "json")
    world.stdout(`${JSON.stringify({ mode, ...found, ...(kernel === null ? {} : { kernel }) }, null, 2)}\n`);
  else world.stdout(`${printTrace(found)}${kernel === null ? "" : printKernel(kernel)}`);
  return kernel?.agrees === false ? 3 : 0;
});

function inNamespace(to: Parsed<To>, namespace: string | undefined): Parsed<To> {
  if (!to.ok || to.value.kind !== "service" || namespace === undefined) return to;
  return parsed({ ...to.value, namespace: to.value.namespace ?? namespace });
}

/** With all Services loaded, the reason can name a similar one. */
async function betterReason(
  reason: string,
  from: Sender,
  to: To,
  whole: PartialView["whole"],
): Promise<string> {
  const all = await whole().catch(() => null);
  const again = all === null ? null : questionOf(from, to, all.routes);
  return again?.ok === false ? again.reason : reason;
}

/** A name is resolved to a Node, or to a Pod and the node it runs on. */
async function senderOf(
  from: From,
  to: To,
  defaultNamespace: string | null,
  target: Target,
  signal: AbortSignal,
): Promise<{ sender: Sender; node: string | null }> {
  if (from.kind !== "named") return { sender: from, node: null };
  const { name } = from;
  const mayBeNode = from.namespace === null && from.only !== "pod";
  if (mayBeNode && name === target.node) return { sender: { kind: "node" }, node: name };
  const nodes = mayBeNode ? await itemsAt("/api/v1/nodes") : [];
  if (nodes?.some(({ metadata }) => metadata?.name === name)) return { sender: { kind: "node" }, node: name };
  if (from.only === "node") throw new UsageError(notFound(from, nodes ?? []));
  const namespace = from.namespace ?? defaultNamespace;
  const pods = await itemsAt("/api/v1/pods");
  if (pods === null)
    throw new UsageError(
      `cannot resolve pod ${name}: files contain no pod addresses; use its address, for example pod:10.0.1.5, or for a node: node --node=${name}`,
    );
  const found = pods.filter(
    ({ metadata }) => metadata?.name === name && (namespace === null || metadata.namespace === namespace),
  );
  if (found.length > 1) {
    const names = found.map(({ metadata }) => `pod:${metadata?.namespace}/${name}`).join(" or ");
    throw new UsageError(`${found.length} pods are named ${name}; use ${names}`);
  }
  const sender = podSender(found[0], familyOfTo(to));
  if (sender === null) throw new UsageError(notFound({ ...from, namespace }, [...pods, ...(nodes ?? [])]));
  return { sender, node: found[0]?.spec?.nodeName ?? null };

  async function itemsAt(path: string): Promise<readonly Item[] | null> {
    try {
      return itemsOf(await getFromApi(target, path, signal));
    } catch (error) {
      if (!(error instanceof SourceError)) throw error;
      throw new UsageError(
        `cannot look up ${name}: ${error.message}; use its address, for example pod:10.0.1.5`,
      );
    }
  }
}

/** In the family of the destination, where that is known; null without an address. */
function podSender(pod: Item | undefined, family: Family | null): Sender | null {
  const { podIP, podIPs = [] } = pod?.status ?? {};
  const all = podIPs.map(({ ip }) => ip);
  const address = all.find((ip) => familyOf(ip) === family) ?? podIP;
  if (address === undefined) return null;
  const otherAddress = all.find((ip) => familyOf(ip) !== familyOf(address));
  return { kind: "pod", address, ...(otherAddress === undefined ? {} : { otherAddress }) };
}

function notFound(
  { namespace, name, only }: Extract<From, { kind: "named" }>,
  items: readonly Item[],
): string {
  const wanted = namespace === null ? name : `${namespace}/${name}`;
  const near = closest(
    name,
    items.map(({ metadata }) => metadata?.name ?? ""),
  );
  const hint = near === null || near === wanted ? "" : `; did you mean ${near}?`;
  const what = only === undefined ? "node or running pod" : only === "pod" ? "running pod" : "node";
  return `no ${what} is named ${JSON.stringify(wanted)}${hint}`;
}

type Item = {
  readonly metadata?: { readonly name?: string; readonly namespace?: string };
  readonly spec?: { readonly nodeName?: string };
  readonly status?: { readonly podIP?: string; readonly podIPs?: readonly { readonly ip: string }[] };
};

function itemsOf(list: unknown): readonly Item[] | null {
  return list === null ? null : ((list as { items?: Item[] }).items ?? []);
}
