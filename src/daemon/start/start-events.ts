// Log lines and Kubernetes Events of every start: deprecations, a mode that was not set, and the start itself.
import type { ValidConfig } from "../../config/config.ts";
import { sendWith } from "../../observe/events/api.ts";
import type { Events } from "../../observe/events/recorder.ts";
import type { Log } from "../../observe/log/log.ts";
import { openApi } from "../../sources/index.ts";
import type { World } from "../../sources/world.ts";
import type { StartedNode } from "./start.ts";

/** Events are sent only where the cluster is followed through its API. */
export async function recordStart(
  { modeDefaulted }: Pick<ValidConfig, "modeDefaulted">,
  { spec, nodeName, mode: { deprecation } }: StartedNode,
  events: Events,
  world: World,
  log: Log,
  signal: AbortSignal,
): Promise<void> {
  const node = { kind: "Node", name: nodeName } as const;
  if (deprecation !== null) log.error(new Error(deprecation.text), deprecation.reason);
  if (spec.kind === "api") {
    events.connect(sendWith(await openApi(spec, world), signal));
    if (modeDefaulted) {
      const note =
        "mode was not set: iptables is used today, nftables will be the default from Kubernetes 1.40 on";
      log.error(new Error(note), "Set mode explicitly");
      events.record("KubeProxyDefaultMode", node, note);
    }
    if (deprecation !== null) events.record(deprecation.reason, node, deprecation.text);
  }
  events.record("Starting", node, "");
}
