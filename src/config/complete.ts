// From the command line and the file to the effective configuration, in the order and precedence of kube-proxy.

import { effective, type Folded, fold, type ProxyConfig, type ValidConfig } from "./config.ts";
import { healthzPort, metricsPort, withDefaults } from "./defaults.ts";
import { type Decoded, decodeConfig } from "./file/decode.ts";
import type { FileConfig, Path } from "./file/fields.ts";
import type { Locate } from "./file/yaml-file.ts";
import { type FlagName, flagAt, flagNames, type Given } from "./flags/table.ts";
import { type ResolvedGates, resolveGates } from "./gates/gates.ts";
import { meaningIn } from "./modes.ts";
import { appendPort } from "./units/host-port.ts";
import { type Parsed, parsed, refused } from "./units/parsed.ts";
import { aggregated, type FieldError, formatErrors } from "./validate/field-error.ts";
import { validateLogging } from "./validate/logging.ts";
import { validate } from "./validate/validate.ts";

export type ConfigFile = { readonly name: string; readonly text: string };

export type Completed =
  | {
      readonly ok: true;
      readonly config: ValidConfig;
      readonly gates: ResolvedGates;
      /** What was let pass but had better be changed. */
      readonly notices: readonly string[];
    }
  | {
      readonly ok: false;
      /** The same error message as kube-proxy. */
      readonly error: string;
      /** The position of each offending value: file and line, or flag. */
      readonly places: readonly string[];
      readonly notices: readonly string[];
    };

/** Pure: the caller has read the file that `--config` names. */
export function completeConfig(given: Given, file: ConfigFile | null): Completed {
  const decoded = file === null ? null : decodeConfig(file.text, file.name);
  if (decoded?.ok === false)
    return failed("failed complete", `failed to decode: ${aggregated(decoded.errors)}`);
  const config = withHostname(decoded === null ? fromFlags(given) : fromFile(decoded, given), given);
  if (!config.ok) return failed("failed complete", config.reason);

  const gates = resolveGates(config.value.featureGates);
  const notices = [...(decoded?.notices ?? []), ...gates.notices];
  if (gates.errors.length > 0) return failed("failed complete", aggregated(gates.errors), [], notices);

  const where = placesIn(decoded?.locate ?? null, given);
  const loggingErrors = validateLogging(config.value.logging, gates.enabled, "logging");
  if (loggingErrors.length > 0) {
    return failed("initialize logging", formatErrors(loggingErrors), where(loggingErrors), notices);
  }
  const errors = validate(config.value);
  if (errors.length > 0) return failed("failed validate", formatErrors(errors), where(errors), notices);
  return { ok: true, config: config.value as ValidConfig, gates, notices };
}

/** Defaults are computed before flags are read, so they never follow a flag. */
function fromFlags(given: Given): ProxyConfig {
  const defaults = withDefaults(new Map());
  const values = withoutEmptyAddresses(given);
  const file = withServerPorts({ ...defaults, ...fieldsFrom(values, flagNames, defaults) }, given);
  return effective(file, foldFlags(fold(defaults), file.mode, given));
}

/** Beside a file only the flags for logging, the host name and the API server count. */
function fromFile({ config }: Decoded & { ok: true }, given: Given): ProxyConfig {
  const logging = fieldsFrom(
    given,
    flagNames.filter((name) => flagAt(name).group === "Logging"),
    config,
  );
  const vmodule = [...(given.vmodule ?? []), ...config["logging.vmodule"]];
  return effective({ ...config, ...logging, "logging.vmodule": vmodule }, fold(config));
}

/** An empty address leaves the default. */
function withoutEmptyAddresses(given: Given): Given {
  const addresses: readonly string[] = ["bind-address", "healthz-bind-address", "metrics-bind-address"];
  const kept = Object.entries(given).filter(([name, value]) => value !== "" || !addresses.includes(name));
  return Object.fromEntries(kept) as Given;
}

function fieldsFrom(given: Given, names: readonly FlagName[], before: FileConfig): Partial<FileConfig> {
  const values: Partial<Record<Path, unknown>> = {};
  for (const name of names) {
    const path = flagAt(name).config;
    if (path === undefined || given[name] === undefined) continue;
    values[path] =
      path === "logging.flushFrequency"
        ? { ...before["logging.flushFrequency"], duration: given["log-flush-frequency"] }
        : given[name];
  }
  return values as Partial<FileConfig>;
}

/** The deprecated port flags: 0 empties the address, another port is added where there is none. */
function withServerPorts(file: FileConfig, given: Given): FileConfig {
  if (given["write-config-to"]) return file;
  const address = (text: string, port: number): string => (port === 0 ? "" : appendPort(text, port));
  return {
    ...file,
    healthzBindAddress: address(file.healthzBindAddress, given["healthz-port"] ?? healthzPort),
    metricsBindAddress: address(file.metricsBindAddress, given["metrics-port"] ?? metricsPort),
  };
}

/** The flags for periods count only in their mode; what they leave is the default of the iptables mode. */
function foldFlags(defaults: Folded, mode: string, given: Given): Folded {
  const { periodFlags: block } = meaningIn(mode);
  const cidrs = given["cluster-cidr"];
  const period = given[`${block}-min-sync-period`];
  return {
    syncPeriod: given[`${block}-sync-period`] ?? defaults.syncPeriod,
    pace: period === undefined ? defaults.pace : { kind: "period", period },
    masqueradeAll: given["masquerade-all"] ?? defaults.masqueradeAll,
    clusterCIDRs: cidrs === undefined ? defaults.clusterCIDRs : cidrs.split(","),
  };
}

function withHostname(config: ProxyConfig, given: Given): Parsed<ProxyConfig> {
  const written = given["hostname-override"];
  if (!written) return parsed(config);
  const hostname = written.trim().toLowerCase();
  if (hostname === "")
    return refused("empty hostname-override is invalid: give the name of this Node or leave the flag out");
  return parsed({ ...config, hostnameOverride: hostname });
}

/** The item of a list where the error names one, else the field, else the flag. */
function placesIn(locate: Locate | null, given: Given): (errors: readonly FieldError[]) => readonly string[] {
  const placeOf = ({ path, setting }: FieldError): string | null => {
    const item = /\[([0-9]+)\]$/.exec(path)?.[1];
    const line = locate?.(`${setting}.${item}`) ?? locate?.(setting);
    if (line) return `${line}: ${setting}`;
    const flag = flagNames.find((name) => flagAt(name).config === setting && given[name] !== undefined);
    return flag === undefined ? null : `--${flag}`;
  };
  return (errors) => [...new Set(errors.map(placeOf))].filter((place) => place !== null);
}

function failed(
  stage: string,
  reason: string,
  places: readonly string[] = [],
  notices: readonly string[] = [],
): Completed {
  return { ok: false, error: `${stage}: ${reason}`, places, notices };
}
