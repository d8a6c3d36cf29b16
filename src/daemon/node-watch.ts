// Ends the daemon when its Node is deleted or changes in a way that requires a restart.
import type { ValidConfig } from "../config/config.ts";
import { quoted } from "../model/problem.ts";
import type { ClusterNode } from "../model/snapshot.ts";
import type { Log } from "../observe/log/log.ts";
import type { Source } from "../sources/source.ts";
import type { Part } from "./part.ts";

export type NodeWatchOptions = {
  readonly source: Pick<Source, "nodeEvents">;
  readonly nodeName: string;
  /** As start-up found it; null: it did not exist. */
  readonly node: ClusterNode | null;
  readonly config: Pick<ValidConfig, "detectLocalMode">;
  readonly onNode: (node: ClusterNode) => void;
};

export function watchNode(options: NodeWatchOptions, log: Log): Part {
  return {
    async run(signal) {
      try {
        const reason = await reasonToExit(options, signal);
        if (reason === null) return null;
        log.error(new Error(reason), "command failed");
        return 1;
      } catch (error) {
        if (!signal.aborted) throw error;
        return null;
      }
    },
  };
}

/** Settings are derived from the Node's addresses and podCIDRs once, at the start. null: the events ended. */
async function reasonToExit(
  { source, nodeName, node, config, onNode }: NodeWatchOptions,
  signal: AbortSignal,
): Promise<string | null> {
  const known = { addresses: node?.addresses ?? [], podCIDRs: node?.podCIDRs ?? [] };
  for await (const event of source.nodeEvents(signal)) {
    if (event.kind === "deleted") return `Node ${quoted(nodeName)} was deleted`;
    if (event.kind === "absent") continue;
    onNode(event.node);
    const { addresses, podCIDRs } = event.node;
    if (addresses.join() !== known.addresses.join())
      return `Node IPs changed from [${known.addresses.join(" ")}] to [${addresses.join(" ")}]`;
    if (config.detectLocalMode === "NodeCIDR" && podCIDRs.join() !== known.podCIDRs.join())
      return `podCIDRs changed from [${known.podCIDRs.join(" ")}] to [${podCIDRs.join(" ")}]`;
  }
  return null;
}
