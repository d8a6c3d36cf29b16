// What the kernel of a node does with a packet: the paths through the rules it holds, and the connections it tracks.

import { readFlows } from "../host/netlink/conntrack.ts";
import { familyOf, joinHostPort } from "../model/address.ts";
import type { HostQuery, Mode, Walk } from "../modes/mode.ts";
import type { Packet } from "../routing/decide.ts";
import type { Routes } from "../routing/routes.ts";

/** The kernel of a node, and what is needed to read it. */
export type Kernel = Pick<HostQuery, "at" | "config" | "relays"> & { readonly mode: Mode };

export type KernelView = {
  /** Whether the rules of the kernel and of the Plan allow the same outcomes. */
  readonly agrees: boolean;
  /** Outcomes by the Plan, and by the rules of the kernel. */
  readonly wanted: readonly string[];
  readonly found: readonly string[];
  /** The rules and elements on one of the paths. */
  readonly steps: readonly string[];
  /** The first few tracked connections to the same destination. */
  readonly flows: readonly string[];
};

const mostFlows = 8;

export async function readKernelView(
  kernel: Kernel,
  routes: Routes,
  packet: Packet,
  signal: AbortSignal,
): Promise<KernelView> {
  const { mode, ...host } = kernel;
  const query = {
    ...host,
    family: routes.settings.family,
    routes: () => Promise.resolve(routes),
    signal,
  };
  const walks = await mode.walkHost(query, packet);
  const [wanted, found] = [outcomeTexts(walks.wanted), outcomeTexts(walks.found)];
  return {
    agrees: JSON.stringify(wanted) === JSON.stringify(outcomesOf(found)),
    wanted,
    found,
    steps: walks.found[0]?.steps ?? [],
    flows: await flowsTo(kernel, packet, signal),
  };
}

function outcomeTexts(walks: readonly Walk[]): string[] {
  return [...new Set(walks.map(({ outcome }) => outcomeText(outcome)))].sort();
}

/** Packets pass where none of our rules exist. */
function outcomesOf(found: readonly string[]): readonly string[] {
  return found.length === 0 ? ["pass"] : found;
}

export function printKernel({ agrees, wanted, found, steps, flows }: KernelView): string {
  const verdict = agrees
    ? ["agrees: the kernel handles this packet the same way"]
    : [
        "MISMATCH: the kernel handles this packet differently",
        `expected: ${wanted.join(", ") || "nothing"}`,
        `found:    ${found.join(", ") || "no rules of Turnout"}`,
      ];
  const rows = [
    ...verdict,
    ...steps.map((step) => `· ${step}`),
    ...flows.map((flow) => `conntrack: ${flow}`),
  ];
  return rows.map((row, i) => `${(i === 0 ? "kernel" : "").padEnd(9)} ${row}\n`).join("");
}

function outcomeText(outcome: Walk["outcome"]): string {
  if (outcome.kind !== "forward") return outcome.kind;
  const { address, port } = outcome.backend;
  return `forward ${joinHostPort(address, port)}${outcome.masquerade ? " masquerade" : ""}`;
}

async function flowsTo({ at }: Kernel, { to }: Packet, signal: AbortSignal): Promise<string[]> {
  const family = familyOf(to.address);
  const select = (flow: { destination: string; destinationPort: number }) =>
    flow.destinationPort === to.port && flow.destination === to.address;
  const found: string[] = [];
  for await (const flows of readFlows({ family, select }, at, signal)) {
    for (const { original, reply } of flows) {
      const answered = joinHostPort(reply.source, reply.sourcePort);
      found.push(`${joinHostPort(original.source, original.sourcePort)} → ${answered}`);
    }
    if (found.length >= mostFlows) break;
  }
  return found.slice(0, mostFlows);
}
