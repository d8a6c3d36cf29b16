// Defaults of the fields, and of the platform.
import { parseAddress } from "../model/address.ts";
import { type FileConfig, fieldAt, type Path, paths } from "./file/fields.ts";
import { kinds } from "./file/kinds.ts";
import { appendPort } from "./units/host-port.ts";

export const healthzPort = 10_256;
export const metricsPort = 10_249;

/** Completes the fields that were given; null and absent fields get their default, some zeros too. */
export function withDefaults(given: ReadonlyMap<Path, unknown>): FileConfig {
  const values = Object.fromEntries(paths.map((path) => [path, completed(path, given.get(path))]));
  return withServerAddresses(values as unknown as FileConfig);
}

function completed(path: Path, value: unknown): unknown {
  const { kind, default: fallback, zeroIsDefault } = fieldAt(path);
  if (value === undefined) return fallback;
  const isZero = kinds[kind].isZero as (value: unknown) => boolean;
  return zeroIsDefault && isZero(value) ? fallback : value;
}

/** The default addresses follow the family of the bind address; one that is no address counts as IPv6. */
function withServerAddresses(config: FileConfig): FileConfig {
  const ipv4 = parseAddress(config.bindAddress)?.includes(".") ?? false;
  const { healthzBindAddress, metricsBindAddress } = config;
  return {
    ...config,
    healthzBindAddress: appendPort(healthzBindAddress || (ipv4 ? "0.0.0.0" : "::"), healthzPort),
    metricsBindAddress: appendPort(metricsBindAddress || (ipv4 ? "127.0.0.1" : "::1"), metricsPort),
  };
}
