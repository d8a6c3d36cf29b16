// What the page of the daemon reads from the kernel of its network namespace: tracked flows, and clients pinned to endpoints.
import { visitEveryFlow } from "../host/netlink/visit-flows.ts";
import { readSysctl } from "../host/sysctl.ts";
import type { NodeRecords } from "../page/records/records.ts";
import { accountingFile } from "./start/kernel-settings.ts";
import type { OpenNode } from "./start/start.ts";

const timestampFile = "/proc/sys/net/netfilter/nf_conntrack_timestamp";

export function kernelRecords({
  families,
  mode: { pinned },
}: Pick<OpenNode, "families" | "mode">): Pick<NodeRecords, "flows" | "pinned"> {
  return {
    flows: {
      visit: (visit, signal) => visitEveryFlow(families, visit, {}, signal),
      settings: () => ({ accounting: isOn(accountingFile), timestamps: isOn(timestampFile) }),
    },
    pinned: pinned === undefined ? null : (port, signal) => pinned(port, {}, signal),
  };
}

/** null: the kernel does not have the setting. */
function isOn(file: string): boolean | null {
  const value = readSysctl(file);
  return value === "" ? null : value !== "0";
}
