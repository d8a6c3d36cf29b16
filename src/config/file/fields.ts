// The table of all fields of a KubeProxyConfiguration v1alpha1; decoder, defaults, writer, schema and docs read it.

import { modes } from "../modes.ts";
import { type Duration, seconds } from "../units/duration.ts";
import type { Kind, KindValues } from "./kinds.ts";
import { kinds } from "./kinds.ts";

type FieldOf<K extends Kind> = {
  readonly kind: K;
  /** The value of a field that is not in the file. */
  readonly default: KindValues[K];
  /** A zero or empty value in the file also means the default, so that zero cannot be set. */
  readonly zeroIsDefault?: true;
  /** Written out only when it is not zero. */
  readonly omitEmpty?: true;
  /** The text in the docs instead of the plain default. */
  readonly defaultText?: string;
  readonly values?: readonly string[];
  readonly about: string;
};

export type Field = { [K in Kind]: FieldOf<K> }[Kind];

type Extra = { zeroIsDefault?: true; omitEmpty?: true; defaultText?: string; values?: readonly string[] };

const orDefault = { zeroIsDefault: true } as const;
const byCost = {
  zeroIsDefault: true,
  defaultText:
    "in proportion to what Syncs cost, at most `1s`: [operations.md](operations.md#how-often-it-syncs)",
} as const;

/** In the order in which the API type declares them: JSON is written in this order. */
export const fields = {
  featureGates: field("switches", {}, "Switches for optional features; see the table of gates.", {
    omitEmpty: true,
  }),

  "clientConnection.kubeconfig": text(
    "Path of the kubeconfig file; empty means the service account of the pod.",
  ),
  "clientConnection.acceptContentTypes": text(
    "Media types for lists and watches, as in an Accept header; empty: `contentType`, then any. Others than JSON and protobuf are left out.",
  ),
  "clientConnection.contentType": text(
    "Preferred media type of lists and watches: protobuf, or `application/json`. What is written, such as Events, is always JSON.",
    "application/vnd.kubernetes.protobuf",
    orDefault,
  ),
  "clientConnection.qps": field(
    "float32",
    5,
    "Requests per second to the API; negative means no limit.",
    orDefault,
  ),
  "clientConnection.burst": field(
    "int32",
    10,
    "Requests to the API that may exceed `qps` for a moment.",
    orDefault,
  ),

  "logging.format": text("Format of the log.", "text", {
    zeroIsDefault: true,
    omitEmpty: true,
    values: ["text", "json"],
  }),
  "logging.flushFrequency": field(
    "flushFrequency",
    { duration: seconds(5), writtenAs: "text" },
    "Longest time a log line may stay in a buffer; an integer means nanoseconds.",
    orDefault,
  ),
  "logging.verbosity": field("uint32", 0, "How much is logged: 0 is least."),
  "logging.vmodule": field("vmodule", [], "Verbosity for single source files; text format only.", {
    omitEmpty: true,
  }),
  "logging.options.text.splitStream": bool(
    "Text: errors to stderr, the rest to stdout. Needs gate `LoggingAlphaOptions`.",
    false,
    { omitEmpty: true },
  ),
  "logging.options.text.infoBufferSize": field(
    "quantity",
    "0",
    "Text: size of the buffer in front of stdout. Needs gate `LoggingAlphaOptions`.",
  ),
  "logging.options.json.splitStream": bool(
    "JSON: errors to stderr, the rest to stdout. Needs gate `LoggingAlphaOptions`.",
    false,
    { omitEmpty: true },
  ),
  "logging.options.json.infoBufferSize": field(
    "quantity",
    "0",
    "JSON: size of the buffer in front of stdout. Needs gate `LoggingAlphaOptions`.",
  ),

  hostnameOverride: text(
    "Name of this Node; empty means the host name. Blanks around it are removed, capitals made small.",
  ),
  bindAddress: text(
    "This node's primary address, when the Node object is not right; nothing is bound to it.",
    "0.0.0.0",
    orDefault,
  ),
  healthzBindAddress: text("Where `/healthz` and `/livez` answer: `IP` or `IP:port`.", "", {
    defaultText: "`0.0.0.0:10256`, or `[::]:10256` when `bindAddress` is IPv6",
  }),
  metricsBindAddress: text("Where `/metrics` answers: `IP` or `IP:port`.", "", {
    defaultText: "`127.0.0.1:10249`, or `[::1]:10249` when `bindAddress` is IPv6",
  }),
  bindAddressHardFail: bool(
    "End the process when the health or metrics address cannot be bound, instead of trying again.",
  ),
  enableProfiling: bool("Serve profiles and `/debug/flags/v` beside the metrics."),
  showHiddenMetricsForVersion: text(
    "Show metrics that were hidden since this release; only the previous minor is allowed.",
  ),

  mode: text("The proxy mode: how Services are implemented on this node.", "", {
    defaultText: "empty, which means `iptables`",
    values: ["", ...Object.keys(modes)],
  }),

  "iptables.masqueradeBit": field(
    "int32",
    14,
    "Bit of the packet mark that requests source NAT, 0 to 31; also for ipvs.",
  ),
  "iptables.masqueradeAll": bool("Source-NAT everything that goes to a cluster IP; also for ipvs."),
  "iptables.localhostNodePorts": bool("Let NodePorts answer on 127.0.0.0/8 (IPv4 only).", true),
  "iptables.syncPeriod": period(
    "How soon a failed Sync is retried, and how often the canary chain is checked. Rules are compared with the kernel once an hour. Also for userspace, which compares every period.",
    seconds(30),
    orDefault,
  ),
  "iptables.minSyncPeriod": period("Shortest time between two Syncs; also for userspace.", 0n, byCost),

  "ipvs.syncPeriod": period(
    "How soon a failed Sync is retried, and how often everything is compared with the kernel.",
    seconds(30),
    orDefault,
  ),
  "ipvs.minSyncPeriod": period("Shortest time between two Syncs.", 0n, byCost),
  "ipvs.scheduler": text("IPVS scheduler; empty means `rr`."),
  "ipvs.excludeCIDRs": field(
    "strings",
    null,
    "Networks whose IPVS services are not ours: they stay untouched.",
  ),
  "ipvs.strictARP": bool("Set `arp_ignore` to 1 and `arp_announce` to 2."),
  "ipvs.tcpTimeout": period("Time-out of idle TCP connections; 0 leaves the kernel's."),
  "ipvs.tcpFinTimeout": period("Time-out of TCP connections after a FIN; 0 leaves the kernel's."),
  "ipvs.udpTimeout": period("Time-out of UDP flows; 0 leaves the kernel's."),

  "nftables.masqueradeBit": field("int32", 14, "Bit of the packet mark that requests source NAT, 0 to 31."),
  "nftables.masqueradeAll": bool("Source-NAT everything that goes to a cluster IP."),
  "nftables.syncPeriod": period(
    "How soon a failed Sync is retried. Rules are compared with the kernel once an hour, and when another program changes them.",
    seconds(30),
    orDefault,
  ),
  "nftables.minSyncPeriod": period("Shortest time between two Syncs.", 0n, byCost),

  "winkernel.networkName": text("Accepted, no effect: Windows only."),
  "winkernel.sourceVip": text("Accepted, no effect: Windows only."),
  "winkernel.enableDSR": bool("Accepted, no effect: Windows only."),
  "winkernel.rootHnsEndpointName": text("Accepted, no effect: Windows only."),
  "winkernel.forwardHealthCheckVip": bool("Accepted, no effect: Windows only."),

  detectLocalMode: text("How traffic of pods on this node is recognised.", "", {
    defaultText: "empty, which means `ClusterCIDR`",
    values: ["", "ClusterCIDR", "NodeCIDR", "BridgeInterface", "InterfaceNamePrefix"],
  }),
  "detectLocal.bridgeInterface": text("Bridge the pods are attached to, for `BridgeInterface`."),
  "detectLocal.interfaceNamePrefix": text(
    "How the names of the pods' interfaces begin, for `InterfaceNamePrefix`.",
  ),
  clusterCIDR: text(
    "Networks of the pods, for `ClusterCIDR`: one, or one of each family with a comma and no blank between.",
  ),

  nodePortAddresses: field(
    "strings",
    null,
    "Where NodePorts answer: networks, and the words `primary`, `localhost`, `all`.",
    {
      defaultText: "`[primary]` in nftables mode, else every address",
    },
  ),

  oomScoreAdj: field("int32", -999, "Score for the kernel's out-of-memory killer, -1000 to 1000."),

  "conntrack.maxPerCore": field(
    "int32",
    32_768,
    "Tracked connections per CPU; 0 leaves the kernel's limit and ignores `min`.",
  ),
  "conntrack.min": field("int32", 131_072, "Tracked connections at least, however few the CPUs."),
  "conntrack.tcpEstablishedTimeout": period(
    "How long an idle TCP connection is tracked; 0 leaves the kernel's.",
    seconds(86_400),
  ),
  "conntrack.tcpCloseWaitTimeout": period(
    "How long a half-closed TCP connection is tracked; 0 leaves the kernel's.",
    seconds(3_600),
  ),
  "conntrack.tcpBeLiberal": bool("Let packets outside the TCP window pass (`nf_conntrack_tcp_be_liberal`)."),
  "conntrack.udpTimeout": period("How long an unanswered UDP flow is tracked; 0 leaves the kernel's."),
  "conntrack.udpStreamTimeout": period("How long an answered UDP flow is tracked; 0 leaves the kernel's."),

  configSyncPeriod: period(
    "Accepted, no effect: unchanged objects are not delivered again.",
    seconds(900),
    orDefault,
  ),
  portRange: text(
    "Host ports the sockets of the userspace mode may use: `min-max`, `min+offset` or one port.",
  ),
  windowsRunAsService: bool("Accepted, no effect: Windows only.", false, { omitEmpty: true }),
};

export type Path = keyof typeof fields;

/** Every field with its value, after defaulting; keys are the dotted paths of the file. */
export type FileConfig = { readonly [P in Path]: KindValues[(typeof fields)[P]["kind"]] };

export const paths = Object.keys(fields) as readonly Path[];

/** The field at a path, without its exact type: for code that treats all kinds alike. */
export function fieldAt(path: Path): Field {
  return fields[path];
}

/** The default as the docs and the schema show it. */
export function defaultOf(path: Path): unknown {
  const { kind, default: value } = fieldAt(path);
  return (kinds[kind].plain as (value: unknown) => unknown)(value);
}

function field<K extends Kind>(kind: K, value: KindValues[K], about: string, extra: Extra = {}): FieldOf<K> {
  return { kind, default: value, about, ...extra };
}

function text(about: string, value = "", extra: Extra = {}): FieldOf<"string"> {
  return field("string", value, about, extra);
}

function bool(about: string, value = false, extra: Extra = {}): FieldOf<"bool"> {
  return field("bool", value, about, extra);
}

function period(about: string, value: Duration = 0n, extra: Extra = {}): FieldOf<"duration"> {
  return field("duration", value, about, extra);
}
