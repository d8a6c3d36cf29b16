// The name of this node: configured, or that of the machine, or the one that the files define.

import { hostname } from "node:os";
import type { ValidConfig } from "../../config/config.ts";
import { nodeNameOf } from "../../config/resolve/resolve.ts";
import { few } from "../../inspect/usage-error.ts";
import type { Log } from "../../observe/log/log.ts";
import type { SourceSpec } from "../../sources/index.ts";
import { nodeNames } from "../../sources/node-names.ts";
import type { World } from "../../sources/world.ts";
import { StartError } from "./start-error.ts";

/** Throws StartError when it is unknown, or when files define Nodes and none of this name. */
export async function ownNodeName(
  config: ValidConfig,
  spec: SourceSpec,
  world: World,
  log: Log,
): Promise<string> {
  const name = nodeNameOf(config, hostname());
  if (spec.kind === "files") return nodeInFiles(name, config, await nodeNames(spec, world), log);
  if (name === "") throw new StartError("Cannot start: this node has no name; set hostnameOverride");
  return name;
}

function nodeInFiles(name: string, config: ValidConfig, names: readonly string[], log: Log): string {
  if (names.includes(name)) return name;
  if (config.hostnameOverride) {
    if (names.length === 0) return name;
    throw new StartError(
      `Cannot start: no Node "${name}" in the files; set --hostname-override to ${few(names)}`,
    );
  }
  const [only, another] = names;
  if (another !== undefined)
    throw new StartError(
      `Cannot start: the files define several Nodes; set --hostname-override to ${few(names)}`,
    );
  if (only !== undefined) log.info("Using the only Node in the files", { node: only });
  return only ?? name;
}
