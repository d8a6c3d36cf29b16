// Which configurations are allowed; every violation is reported, under the field names of kube-proxy.
import { parseCidr } from "../../model/address.ts";
import type { ProxyConfig } from "../config.ts";
import type { Path } from "../file/fields.ts";
import { type ResolvedGates, resolveGates } from "../gates/gates.ts";
import { meaningIn, modes } from "../modes.ts";
import { writtenPeriod } from "../pace.ts";
import type { Duration } from "../units/duration.ts";
import { parsePortRange } from "../units/port-range.ts";
import { release } from "../version.ts";
import { validateAddresses, validateDetectLocal, validateNodePortAddresses } from "./addresses.ts";
import { type FieldError, invalid } from "./field-error.ts";
import { validateLogging } from "./logging.ts";

const root = "KubeProxyConfiguration";

export function validate(config: ProxyConfig): FieldError[] {
  const gates = resolveGates(config.featureGates);
  return [
    ...validateGates(config, gates),
    ...masqueradeBit(
      `${root}.KubeProxyIPTablesConfiguration`,
      "iptables.masqueradeBit",
      config.iptables.masqueradeBit,
    ),
    ...validateModeFields(config),
    ...validateLinux(config),
    ...validateMode(config, gates),
    ...atLeastZero(`${root}.ClientConnection.Burst`, "clientConnection.burst", config.clientConnection.burst),
    ...validatePeriods(config),
    ...validateAddresses(config),
    ...validateNodePortAddresses(config.nodePortAddresses ?? []),
    ...validateShowHidden(config.showHiddenMetricsForVersion),
    ...validateDetectLocal(config),
    ...validateLogging(config.logging, gates.enabled, `${root}.logging`),
  ];
}

/** Fields that apply in one mode only. */
function validateModeFields(config: ProxyConfig): FieldError[] {
  const { fields } = meaningIn(config.mode);
  return modeFieldValidators
    .filter(([field]) => fields.includes(field))
    .flatMap(([, validateFields]) => validateFields(config));
}

const modeFieldValidators: readonly (readonly [string, (config: ProxyConfig) => FieldError[]])[] = [
  ["ipvs.", validateIpvs],
  [
    "nftables.",
    ({ nftables }) =>
      masqueradeBit(
        `${root}.KubeProxyNFTablesConfiguration`,
        "nftables.masqueradeBit",
        nftables.masqueradeBit,
      ),
  ],
  ["portRange", validatePortRange],
];

function validateGates(config: ProxyConfig, { errors }: ResolvedGates): FieldError[] {
  return errors.map((error) => invalid(`${root}.featureGates`, "featureGates", config.featureGates, error));
}

function masqueradeBit(block: string, setting: Path, bit: number): FieldError[] {
  return bit >= 0 && bit <= 31
    ? []
    : [invalid(`${block}.MasqueradeBit`, setting, bit, "must be within the range [0, 31]")];
}

function validateIpvs({ ipvs }: ProxyConfig): FieldError[] {
  const block = `${root}.KubeProxyIPVSConfiguration`;
  return [
    ...atLeastZero(`${block}.TCPTimeout`, "ipvs.tcpTimeout", ipvs.tcpTimeout),
    ...atLeastZero(`${block}.TCPFinTimeout`, "ipvs.tcpFinTimeout", ipvs.tcpFinTimeout),
    ...atLeastZero(`${block}.UDPTimeout`, "ipvs.udpTimeout", ipvs.udpTimeout),
    ...(ipvs.excludeCIDRs ?? []).flatMap((cidr, i) =>
      parseCidr(cidr) === null
        ? [
            invalid(
              `${block}.ExcludeCidrs[${i}]`,
              "ipvs.excludeCIDRs",
              cidr,
              "must be a CIDR, like 10.20.0.0/16",
            ),
          ]
        : [],
    ),
  ];
}

function validateLinux({ conntrack, oomScoreAdj }: ProxyConfig): FieldError[] {
  const block = `${root}.KubeProxyLinuxConfiguration`;
  const tracking = `${block}.KubeProxyConntrackConfiguration`;
  return [
    ...atLeastZero(`${tracking}.MaxPerCore`, "conntrack.maxPerCore", conntrack.maxPerCore),
    ...atLeastZero(`${tracking}.Min`, "conntrack.min", conntrack.min),
    ...atLeastZero(
      `${tracking}.TCPEstablishedTimeout`,
      "conntrack.tcpEstablishedTimeout",
      conntrack.tcpEstablishedTimeout,
    ),
    ...atLeastZero(
      `${tracking}.TCPCloseWaitTimeout`,
      "conntrack.tcpCloseWaitTimeout",
      conntrack.tcpCloseWaitTimeout,
    ),
    ...atLeastZero(`${tracking}.UDPTimeout`, "conntrack.udpTimeout", conntrack.udpTimeout),
    ...atLeastZero(`${tracking}.UDPStreamTimeout`, "conntrack.udpStreamTimeout", conntrack.udpStreamTimeout),
    ...(oomScoreAdj < -1000 || oomScoreAdj > 1000
      ? [
          invalid(
            `${block}.OOMScoreAdj`,
            "oomScoreAdj",
            oomScoreAdj,
            "must be within the range [-1000, 1000]",
          ),
        ]
      : []),
  ];
}

function validateMode({ mode }: ProxyConfig, { enabled }: ResolvedGates): FieldError[] {
  const allowed = Object.entries(modes).flatMap(([name, { gate }]) =>
    gate === null || enabled(gate) ? [name] : [],
  );
  if (allowed.includes(mode)) return [];
  const { gate } = meaningIn(mode);
  const why =
    gate !== null
      ? `; feature gate ${gate} is off`
      : mode === "kernelspace"
        ? "; kernelspace is for Windows"
        : "";
  const detail = `must be ${allowed.join(", ")} or blank (blank means iptables)${why}`;
  return [invalid(`${root}.Mode.ProxyMode`, "mode", mode, detail)];
}

function validatePortRange({ portRange }: ProxyConfig): FieldError[] {
  const range = parsePortRange(portRange);
  return range.ok ? [] : [invalid(`${root}.PortRange`, "portRange", portRange, range.reason)];
}

function validatePeriods(config: ProxyConfig): FieldError[] {
  const { syncPeriod, pace } = config;
  const minSyncPeriod = writtenPeriod(pace);
  const { periods: block } = meaningIn(config.mode);
  const [sync, min] = [`${block}.syncPeriod`, `${block}.minSyncPeriod`] as const;
  return [
    ...aboveZero(`${root}.ConfigSyncPeriod`, "configSyncPeriod", config.configSyncPeriod),
    ...aboveZero(`${root}.SyncPeriod`, sync, syncPeriod),
    ...atLeastZero(`${root}.MinSyncPeriod`, min, minSyncPeriod),
    ...(minSyncPeriod > syncPeriod
      ? [
          invalid(
            `${root}.SyncPeriod`,
            min,
            minSyncPeriod,
            `must be greater than or equal to ${root}.MinSyncPeriod`,
          ),
        ]
      : []),
  ];
}

function validateShowHidden(version: string): FieldError[] {
  const previous = `${release.major}.${release.minor - 1}`;
  if (version === "" || version === previous) return [];
  const detail = `must be omitted or have the value '${previous}'; only the previous minor version is allowed`;
  return [invalid(`${root}.ShowHiddenMetricsForVersion`, "showHiddenMetricsForVersion", version, detail)];
}

function atLeastZero(path: string, setting: Path, value: number | Duration): FieldError[] {
  return value < 0 ? [invalid(path, setting, value, "must be greater than or equal to 0")] : [];
}

function aboveZero(path: string, setting: Path, value: Duration): FieldError[] {
  return value <= 0 ? [invalid(path, setting, value, "must be greater than 0")] : [];
}
