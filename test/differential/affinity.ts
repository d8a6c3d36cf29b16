// Clears the session affinity of a node, so that the next choice is a new one.
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Namespace } from "../kernel/netns.ts";
import type { Mode } from "../reference/proxy.ts";

export function forgetAffinity(node: Namespace, mode: Mode): void {
  if (mode === "nftables") flushSets(node);
  else node.inside(emptyLists);
}

/** Both programs keep session affinity in dynamic sets of these names. */
function flushSets(node: Namespace): void {
  const commands: string[] = [];
  let table = "";
  for (const line of node.run("nft", "-t", "list", "sets").split("\n")) {
    table = /^table (.*) \{$/.exec(line)?.[1] ?? table;
    const set = /^\tset (affinity-\S+) \{$/.exec(line)?.[1];
    if (set !== undefined) commands.push(`flush set ${table} ${set}`);
  }
  if (commands.length > 0) node.feed(commands.join("\n"), "nft", "-f", "-");
}

/** Where the kernel shows the lists of the `recent` match, for this thread's namespace. */
const folder = "/proc/thread-self/net/xt_recent";

function emptyLists(): void {
  for (const name of readdirSync(folder)) writeFileSync(join(folder, name), "/");
}
