// What the page of the daemon reads from the kernel of its network namespace: tracked flows, paths of packets, and pinned clients.
import { visitEveryFlow } from "../host/netlink/visit-flows.ts";
import { readSysctl } from "../host/sysctl.ts";
import type { NodeRecords } from "../page/records/records.ts";
import { accountingFile } from "./start/kernel-settings.ts";
import type { OpenNode } from "./start/start.ts";

const timestampFile = "/proc/sys/net/netfilter/nf_conntrack_timestamp";

/** Reading the sets of a large cluster takes a second. */
const longestMs = 10_000;

export function kernelRecords({
  families,
  mode,
  settings,
  drivers,
}: Pick<OpenNode, "families" | "mode" | "settings" | "drivers">): Omit<NodeRecords, "history" | "traffic"> {
  const { pinned } = mode;
  return {
    flows: {
      visit: (visit, signal) => visitEveryFlow(families, visit, {}, signal),
      settings: () => ({ accounting: isOn(accountingFile), timestamps: isOn(timestampFile) }),
    },
    async walks(routes, packet) {
      const query = {
        at: {},
        family: routes.settings.family,
        routes: async () => routes,
        config: settings.config,
        relays: async () =>
          Object.fromEntries([...drivers].map(([family, driver]) => [family, driver.report().relays?.()])),
        signal: AbortSignal.timeout(longestMs),
      };
      return (await mode.walkHost(query, packet)).found;
    },
    pinned: pinned === undefined ? null : (port, signal) => pinned(port, {}, signal),
  };
}

/** null: the kernel does not have the setting. */
function isOn(file: string): boolean | null {
  const value = readSysctl(file);
  return value === "" ? null : value !== "0";
}
