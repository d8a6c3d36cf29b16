// Fields of the configuration that mean something else, or nothing, in another mode.

import { defaultOf, type FileConfig, fieldAt, type Path, paths } from "../../config/file/fields.ts";
import { kinds } from "../../config/file/kinds.ts";
import { type ModeName, modes } from "../../config/modes.ts";

export type SettingChange = { readonly field: string; readonly value: string; readonly message: string };

/** Only fields that differ from their default; and what the default itself means, where that changes. */
export function settingChanges(from: ModeName, to: ModeName, file: FileConfig): SettingChange[] {
  const changed = paths
    .filter((path) => belongsTo(path, from) && !belongsTo(path, to) && !isDefault(path, file))
    .map((field) => ({ field, value: shown(field, file), message: messageFor(field, to, file) }))
    .filter(({ message }) => message !== "");
  return [...changed, ...defaultChanges(from, to, file)];
}

function belongsTo(path: Path, mode: ModeName): boolean {
  return modes[mode].fields.some((prefix) => path.startsWith(prefix));
}

function messageFor(path: Path, to: ModeName, file: FileConfig): string {
  const remark = remarks[path];
  if (remark !== undefined) return remark;
  const name = path.slice(path.indexOf(".") + 1);
  const twin = paths.find((each) => belongsTo(each, to) && each.endsWith(`.${name}`));
  if (twin === undefined) return `has no effect in ${to} mode`;
  if (shown(twin, file) === shown(path, file)) return "";
  const isUnset = isDefault(twin, file) && fieldAt(twin).defaultText !== undefined;
  return `${twin} counts instead, which is ${isUnset ? "not set" : shown(twin, file)}: copy the value`;
}

const remarks: Partial<Record<Path, string>> = {
  "ipvs.scheduler": "has no equivalent: endpoints are chosen without regard to load or client",
  "ipvs.excludeCIDRs":
    "is no longer needed: Turnout leaves foreign virtual servers alone, also when it leaves ipvs mode (kube-proxy then removes all)",
  "ipvs.strictARP":
    "is no longer needed; arp_ignore and arp_announce stay as they are until they are set by hand or the node restarts",
  "ipvs.tcpTimeout":
    "has no effect: conntrack.tcpEstablishedTimeout sets how long idle connections are tracked",
  "ipvs.tcpFinTimeout": "has no effect: the kernel's nf_conntrack_tcp_timeout_fin_wait counts",
  "ipvs.udpTimeout": "has no effect: conntrack.udpTimeout and conntrack.udpStreamTimeout count",
  "iptables.localhostNodePorts": "has no effect: this mode has its own way with NodePorts on loopback",
  portRange: "has no effect: no other mode listens on ports of its own",
};

function defaultChanges(from: ModeName, to: ModeName, file: FileConfig): SettingChange[] {
  const [before, after] = [modes[from].nodePortAddresses, modes[to].nodePortAddresses];
  if ((file.nodePortAddresses ?? []).length > 0 || before === after) return [];
  const message =
    after !== null
      ? "empty means the node's primary address only; use [all] to keep NodePorts on every address"
      : "empty means every address of the node; use [primary] to keep NodePorts on its primary address";
  return [{ field: "nodePortAddresses", value: "[]", message }];
}

function isDefault(path: Path, file: FileConfig): boolean {
  return shown(path, file) === JSON.stringify(defaultOf(path));
}

function shown(path: Path, file: FileConfig): string {
  return JSON.stringify((kinds[fieldAt(path).kind].plain as (value: unknown) => unknown)(file[path]));
}
