// The effective configuration: the fields of the file with the settings of the selected mode folded together.
import { type FileConfig, fieldAt, type Path, paths } from "./file/fields.ts";
import { kinds, type Plain } from "./file/kinds.ts";
import { type ModeName, meaningIn, modes } from "./modes.ts";
import { paceFromFile, type SyncPace, writtenPeriod } from "./pace.ts";
import type { Duration } from "./units/duration.ts";

export type LocalMode = "ClusterCIDR" | "NodeCIDR" | "BridgeInterface" | "InterfaceNamePrefix";

/** Settings that the file keeps per mode, or as one string, and the process only once. */
export type Folded = {
  readonly syncPeriod: Duration;
  /** `minSyncPeriod`. */
  readonly pace: SyncPace;
  readonly masqueradeAll: boolean;
  /** `clusterCIDR`, split at its commas. */
  readonly clusterCIDRs: readonly string[];
};

type FoldedPath =
  | `${"iptables" | "ipvs" | "nftables"}.${"syncPeriod" | "minSyncPeriod"}`
  | `${"iptables" | "nftables"}.masqueradeAll`
  | "clusterCIDR";

type Nested<T> = {
  readonly [K in keyof T as K extends `${infer Head}.${string}`
    ? Head
    : K]: K extends `${infer Head}.${string}`
    ? Nested<{ readonly [P in keyof T as P extends `${Head}.${infer Rest}` ? Rest : never]: T[P] }>
    : T[K];
};

/** Nested as in the file: `config.conntrack.maxPerCore`, and `config.syncPeriod` of the selected mode. */
export type ProxyConfig = Nested<Omit<FileConfig, FoldedPath>> &
  Folded & {
    /** The mode was not given: a notice about the coming change of the default is due. */
    readonly modeDefaulted: boolean;
  };

/** A configuration that passed validation; `mode` and `detectLocalMode` are known values. */
export type ValidConfig = ProxyConfig & { readonly mode: ModeName; readonly detectLocalMode: LocalMode };

/** The settings of a file for its own mode. */
export function fold(file: FileConfig): Folded {
  const { periods, masquerade, minSyncPeriod } = meaningIn(file.mode);
  return {
    syncPeriod: file[`${periods}.syncPeriod`],
    pace: paceFromFile(file[`${periods}.minSyncPeriod`], minSyncPeriod),
    masqueradeAll: file[`${masquerade}.masqueradeAll`],
    clusterCIDRs: file.clusterCIDR === "" ? [] : file.clusterCIDR.split(","),
  };
}

/** The effective configuration, with the defaults of the platform. */
export function effective(file: FileConfig, folded: Folded): ProxyConfig {
  const mode = file.mode === "" ? "iptables" : file.mode;
  const { nodePortAddresses: assumed } = meaningIn(mode);
  const isSet = (file.nodePortAddresses ?? []).length > 0;
  const values = {
    ...file,
    mode,
    nodePortAddresses: isSet ? file.nodePortAddresses : (assumed ?? file.nodePortAddresses),
    detectLocalMode: file.detectLocalMode === "" ? "ClusterCIDR" : file.detectLocalMode,
  };
  const kept = paths.filter((path) => !isFolded(path)).map((path) => [path, values[path]] as const);
  return { ...nested(kept), ...folded, modeDefaulted: file.mode === "" } as unknown as ProxyConfig;
}

/** The equivalent file; periods of the other modes are zero, as kube-proxy writes them. */
export function unfold(config: ProxyConfig): FileConfig {
  const { periods, masquerade, portRange } = meaningIn(config.mode);
  const folded = new Map<Path, unknown>([
    [`${periods}.syncPeriod`, config.syncPeriod],
    [`${periods}.minSyncPeriod`, writtenPeriod(config.pace)],
    [`${masquerade}.masqueradeAll`, config.masqueradeAll],
    ["clusterCIDR", config.clusterCIDRs.join(",")],
    ["portRange", portRange ? config.portRange : ""],
  ]);
  const values = paths.map((path) => {
    if (folded.has(path)) return [path, folded.get(path)];
    return [path, isFolded(path) ? kinds[fieldAt(path).kind].zero : at(config, path)];
  });
  return Object.fromEntries(values) as FileConfig;
}

/** The equivalent file in which a `minSyncPeriod` that is not set stays zero. */
export function unfoldGiven(config: ProxyConfig): FileConfig {
  const file = unfold(config);
  return config.pace.kind === "period"
    ? file
    : { ...file, [`${meaningIn(config.mode).periods}.minSyncPeriod`]: 0n };
}

/** The same settings in another mode; the meaning of an empty list of addresses is not kept. */
export function inMode(config: ValidConfig, mode: ModeName): ValidConfig {
  if (config.mode === mode) return config;
  const { nodePortAddresses: addresses } = config;
  const assumed = modes[config.mode].nodePortAddresses;
  const isDefault = assumed !== null && addresses?.join() === assumed.join();
  const file = { ...unfold(config), mode, nodePortAddresses: isDefault ? [] : addresses };
  return effective(file, { ...fold(file), masqueradeAll: config.masqueradeAll }) as ValidConfig;
}

/** The file as plain data with its header, in the order of the API type. */
export function plainFile(file: FileConfig): { readonly [key: string]: Plain } {
  const written = paths.filter((path) => {
    const { kind, omitEmpty } = fieldAt(path);
    return !(omitEmpty && (kinds[kind].isZero as (value: unknown) => boolean)(file[path]));
  });
  const header = [["kind", kind] as const, ["apiVersion", apiVersion] as const];
  return nested([...header, ...written.map((path) => [path, plainValue(path, file)] as const)]);
}

export const kind = "KubeProxyConfiguration";
export const apiVersion = "kubeproxy.config.k8s.io/v1alpha1";

function plainValue(path: Path, file: FileConfig): Plain {
  return (kinds[fieldAt(path).kind].plain as (value: unknown) => Plain)(file[path]);
}

function isFolded(path: Path): path is FoldedPath {
  return (
    path === "clusterCIDR" ||
    /^(iptables|ipvs|nftables)\.(syncPeriod|minSyncPeriod|masqueradeAll)$/.test(path)
  );
}

type Tree<V> = { [key: string]: V | Tree<V> };

function nested<V>(entries: Iterable<readonly [string, V]>): { readonly [key: string]: V } {
  const root: Tree<V> = {};
  for (const [path, value] of entries) {
    const steps = path.split(".");
    let section = root;
    for (const step of steps.slice(0, -1)) section = section[step] = (section[step] as Tree<V>) ?? {};
    section[steps.at(-1)!] = value;
  }
  return root as { readonly [key: string]: V };
}

function at(config: ProxyConfig, path: Path): unknown {
  return path
    .split(".")
    .reduce<unknown>((section, step) => (section as Record<string, unknown>)[step], config);
}
