// The table of all flags of kube-proxy on Linux; the parser, the help and the docs page read it.
import { type FileConfig, fields, type Path } from "../file/fields.ts";
import type { FlagType, FlagValues } from "./types.ts";

export const groups = [
  "Control",
  "Cluster",
  "Node",
  "Servers",
  "Mode",
  "iptables mode",
  "ipvs mode",
  "Local traffic",
  "Connection tracking",
  "Logging",
  "Earlier releases",
] as const;

export type Group = (typeof groups)[number];

export type Flag<T extends FlagType = FlagType> = {
  readonly type: T;
  readonly group: Group;
  readonly about: string;
  /** The value without the flag; undefined: none is shown. */
  readonly default?: FlagValues[T];
  /** The text in help and docs instead of the plain default. */
  readonly defaultText?: string;
  /** The equivalent field of the file. */
  readonly config?: Path;
  readonly short?: string;
  /** Instead of it. */
  readonly deprecated?: string;
  /** Of earlier releases: accepted, and reported only where it is used. */
  readonly removed?: true;
};

const pacedByCost = "paced by the cost of Syncs";

export const flags = {
  config: flag(
    "string",
    "Control",
    "Path of a KubeProxyConfiguration in YAML or JSON; most other flags are then ignored.",
  ),
  "write-config-to": flag("string", "Control", "Write the effective configuration to this file and exit."),
  cleanup: flag("bool", "Control", "Remove everything the proxy put on this node, of any mode, and exit."),
  "init-only": flag(
    "bool",
    "Control",
    "Do what needs full root privileges, and exit; then CAP_NET_ADMIN is enough.",
  ),
  version: flag(
    "version",
    "Control",
    "Print the version and exit; raw prints all about it; v1.37.1-… reports that one instead.",
  ),
  help: flag("bool", "Control", "Print this help and exit.", { short: "h" }),

  kubeconfig: of(
    "clientConnection.kubeconfig",
    "string",
    "Cluster",
    "Path of the kubeconfig file; without it, the service account of the pod.",
  ),
  master: flag("string", "Cluster", "URL of the API server; wins over the kubeconfig, also beside --config."),
  "kube-api-content-type": of(
    "clientConnection.contentType",
    "string",
    "Cluster",
    "Preferred media type of lists and watches: protobuf, or application/json.",
  ),
  "kube-api-qps": of("clientConnection.qps", "float32", "Cluster", "Requests per second to the API."),
  "kube-api-burst": of(
    "clientConnection.burst",
    "int32",
    "Cluster",
    "Requests that may exceed --kube-api-qps for a moment.",
  ),
  "config-sync-period": of(
    "configSyncPeriod",
    "duration",
    "Cluster",
    "Accepted, no effect: unchanged objects are not delivered again.",
  ),
  "feature-gates": of(
    "featureGates",
    "switches",
    "Cluster",
    "Optional features: A=true,B=false; docs/configuration.md lists them.",
  ),

  "hostname-override": of(
    "hostnameOverride",
    "string",
    "Node",
    "Name of this Node, when it is not the host name; also beside --config.",
  ),
  "bind-address": of("bindAddress", "ip", "Node", "This node's primary address; nothing is bound to it."),
  "nodeport-addresses": of(
    "nodePortAddresses",
    "strings",
    "Node",
    "Where NodePorts answer: networks, and the words primary, localhost, all. Without it: primary in nftables mode, else all.",
  ),
  "oom-score-adj": of(
    "oomScoreAdj",
    "int32",
    "Node",
    "Score for the kernel's out-of-memory killer, -1000 to 1000.",
  ),

  "healthz-bind-address": of("healthzBindAddress", "ipPort", "Servers", "Where /healthz and /livez answer.", {
    default: "0.0.0.0:10256",
  }),
  "metrics-bind-address": of("metricsBindAddress", "ipPort", "Servers", "Where /metrics answers.", {
    default: "127.0.0.1:10249",
  }),
  "bind-address-hard-fail": of(
    "bindAddressHardFail",
    "bool",
    "Servers",
    "Exit when one of these addresses cannot be bound.",
  ),
  profiling: of(
    "enableProfiling",
    "bool",
    "Servers",
    "Serve profiles and /debug/flags/v beside the metrics.",
  ),
  "show-hidden-metrics-for-version": of(
    "showHiddenMetricsForVersion",
    "string",
    "Servers",
    "Show metrics hidden since this release; only the previous minor is allowed.",
  ),
  "healthz-port": flag("int32", "Servers", "Port of the health server; 0 turns it off.", {
    default: 10_256,
    deprecated: "use --healthz-bind-address instead",
  }),
  "metrics-port": flag("int32", "Servers", "Port of the metrics server.", {
    default: 10_249,
    deprecated: "use --metrics-bind-address instead",
  }),

  "proxy-mode": of("mode", "string", "Mode", "nftables, iptables, ipvs or userspace; without it iptables."),
  "masquerade-all": of(
    "iptables.masqueradeAll",
    "bool",
    "Mode",
    "Source-NAT everything that goes to a cluster IP, in every mode.",
  ),

  "iptables-masquerade-bit": of(
    "iptables.masqueradeBit",
    "int32",
    "iptables mode",
    "Bit of the packet mark that requests source NAT, 0 to 31; also for ipvs.",
  ),
  "iptables-localhost-nodeports": of(
    "iptables.localhostNodePorts",
    "bool",
    "iptables mode",
    "Let NodePorts answer on 127.0.0.0/8 (IPv4 only).",
  ),
  "iptables-sync-period": of(
    "iptables.syncPeriod",
    "duration",
    "iptables mode",
    "How soon a failed Sync is retried; also for nftables and userspace.",
  ),
  "iptables-min-sync-period": of(
    "iptables.minSyncPeriod",
    "duration",
    "iptables mode",
    "Shortest time between two Syncs; also for nftables and userspace.",
    { default: 1_000_000_000n, defaultText: pacedByCost },
  ),

  "ipvs-sync-period": of(
    "ipvs.syncPeriod",
    "duration",
    "ipvs mode",
    "How soon a failed Sync is retried, and how often all is compared with the kernel.",
  ),
  "ipvs-min-sync-period": of(
    "ipvs.minSyncPeriod",
    "duration",
    "ipvs mode",
    "Shortest time between two Syncs.",
    { default: 1_000_000_000n, defaultText: pacedByCost },
  ),
  "ipvs-scheduler": of("ipvs.scheduler", "string", "ipvs mode", "IPVS scheduler; without it rr."),
  "ipvs-exclude-cidrs": of(
    "ipvs.excludeCIDRs",
    "strings",
    "ipvs mode",
    "Networks whose IPVS services stay untouched.",
  ),
  "ipvs-strict-arp": of("ipvs.strictARP", "bool", "ipvs mode", "Set arp_ignore to 1 and arp_announce to 2."),
  "ipvs-tcp-timeout": of(
    "ipvs.tcpTimeout",
    "duration",
    "ipvs mode",
    "Time-out of idle TCP connections; 0 leaves the kernel's.",
  ),
  "ipvs-tcpfin-timeout": of(
    "ipvs.tcpFinTimeout",
    "duration",
    "ipvs mode",
    "Time-out of TCP connections after a FIN; 0 leaves the kernel's.",
  ),
  "ipvs-udp-timeout": of(
    "ipvs.udpTimeout",
    "duration",
    "ipvs mode",
    "Time-out of UDP flows; 0 leaves the kernel's.",
  ),

  "detect-local-mode": of(
    "detectLocalMode",
    "string",
    "Local traffic",
    "How pods on this node are recognised: ClusterCIDR, NodeCIDR, BridgeInterface or InterfaceNamePrefix; without it ClusterCIDR.",
  ),
  "cluster-cidr": of(
    "clusterCIDR",
    "string",
    "Local traffic",
    "Networks of the pods: one, or one of each family with a comma between.",
  ),
  "pod-bridge-interface": of(
    "detectLocal.bridgeInterface",
    "string",
    "Local traffic",
    "Bridge the pods are attached to, for BridgeInterface.",
  ),
  "pod-interface-name-prefix": of(
    "detectLocal.interfaceNamePrefix",
    "string",
    "Local traffic",
    "How the names of the pods' interfaces begin, for InterfaceNamePrefix.",
  ),

  "conntrack-max-per-core": of(
    "conntrack.maxPerCore",
    "int32",
    "Connection tracking",
    "Tracked connections per CPU; 0 leaves the kernel's limit and ignores --conntrack-min.",
  ),
  "conntrack-min": of(
    "conntrack.min",
    "int32",
    "Connection tracking",
    "Tracked connections at least, however few the CPUs.",
  ),
  "conntrack-tcp-timeout-established": of(
    "conntrack.tcpEstablishedTimeout",
    "duration",
    "Connection tracking",
    "How long an idle TCP connection is tracked; 0 leaves the kernel's.",
  ),
  "conntrack-tcp-timeout-close-wait": of(
    "conntrack.tcpCloseWaitTimeout",
    "duration",
    "Connection tracking",
    "How long a half-closed TCP connection is tracked; 0 leaves the kernel's.",
  ),
  "conntrack-tcp-be-liberal": of(
    "conntrack.tcpBeLiberal",
    "bool",
    "Connection tracking",
    "Let packets outside the TCP window pass.",
  ),
  "conntrack-udp-timeout": of(
    "conntrack.udpTimeout",
    "duration",
    "Connection tracking",
    "How long an unanswered UDP flow is tracked; 0 leaves the kernel's.",
  ),
  "conntrack-udp-timeout-stream": of(
    "conntrack.udpStreamTimeout",
    "duration",
    "Connection tracking",
    "How long an answered UDP flow is tracked; 0 leaves the kernel's.",
  ),

  v: of("logging.verbosity", "level", "Logging", "How much is logged: 0 is least.", { short: "v" }),
  vmodule: of(
    "logging.vmodule",
    "vmodule",
    "Logging",
    "Verbosity for single source files; text format only.",
  ),
  "logging-format": of("logging.format", "string", "Logging", "text or json."),
  "log-flush-frequency": flag("duration", "Logging", "Longest time a log line may stay in a buffer.", {
    config: "logging.flushFrequency",
    default: 5_000_000_000n,
  }),
  "log-text-split-stream": of(
    "logging.options.text.splitStream",
    "bool",
    "Logging",
    "Text: errors to stderr, the rest to stdout (alpha).",
  ),
  "log-text-info-buffer-size": of(
    "logging.options.text.infoBufferSize",
    "quantity",
    "Logging",
    "Text: size of the buffer in front of stdout (alpha).",
  ),
  "log-json-split-stream": of(
    "logging.options.json.splitStream",
    "bool",
    "Logging",
    "JSON: errors to stderr, the rest to stdout (alpha).",
  ),
  "log-json-info-buffer-size": of(
    "logging.options.json.infoBufferSize",
    "quantity",
    "Logging",
    "JSON: size of the buffer in front of stdout (alpha).",
  ),

  "proxy-port-range": of(
    "portRange",
    "string",
    "Earlier releases",
    "Host ports that userspace mode may use: `min-max`, `min+offset` or one port.",
    { deprecated: "it has an effect in userspace mode only; use portRange in a file", removed: true },
  ),
  "boot-id-file": earlier("string"),
  "machine-id-file": earlier("string"),
  "cleanup-ipvs": earlier("bool"),
  "udp-timeout": earlier("duration"),
  logtostderr: earlier("bool"),
  alsologtostderr: earlier("bool"),
  stderrthreshold: earlier("string"),
  "log-dir": earlier("string"),
  "log-file": earlier("string"),
  "log-file-max-size": earlier("string"),
  "log-backtrace-at": earlier("string"),
  "add-dir-header": earlier("bool"),
  "one-output": earlier("bool"),
  "skip-headers": earlier("bool"),
  "skip-log-headers": earlier("bool"),
};

export type FlagName = keyof typeof flags;

export const flagNames = Object.keys(flags) as readonly FlagName[];

/** The flags that were used, with their values. */
export type Given = { readonly [N in FlagName]?: FlagValues[(typeof flags)[N]["type"]] };

/** The flag of a name, without its exact type. */
export function flagAt(name: FlagName): Flag {
  return flags[name] as Flag;
}

type Extra<T extends FlagType> = Omit<Flag<T>, "type" | "group" | "about">;

function flag<T extends FlagType>(type: T, group: Group, about: string, extra: Extra<T> = {}): Flag<T> {
  return { type, group, about, ...extra };
}

/** A flag that kube-proxy had and v1.37 has no more. */
function earlier<T extends FlagType>(type: T): Flag<T> {
  const deprecated = "it has no effect; remove it";
  return flag(type, "Earlier releases", "Accepted, no effect.", { deprecated, removed: true });
}

/** A flag for a field of the file; its default is the field's. */
function of<P extends Path, T extends FlagType>(
  config: P & PathOf<FlagValues[T]>,
  type: T,
  group: Group,
  about: string,
  extra: Extra<T> = {},
): Flag<T> {
  const { default: fallback } = fields[config as Path];
  return {
    config: config as Path,
    type,
    group,
    about,
    ...(fallback === null ? {} : { default: fallback as FlagValues[T] }),
    ...extra,
  };
}

/** Fields that can take a value of the flag's type. */
type PathOf<V> = { [P in Path]: V extends FileConfig[P] ? P : never }[Path];
