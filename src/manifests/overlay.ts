// A Snapshot with some objects added or replaced, as `whatif --with` reads them from a file.
import { type Family, families } from "../model/address.ts";
import type { ServiceName, ServicePort, Snapshot } from "../model/snapshot.ts";
import type { Slice } from "./endpointslice.ts";
import { joinEndpoints } from "./join.ts";
import type { Reading } from "./reading.ts";
import type { Service } from "./service.ts";

/**
 * A Service replaces the one of its name and keeps its endpoints, unless there are EndpointSlices for it: these replace all
 * endpoints that it has. A Node counts if it is that of the Snapshot; ServiceCIDRs do not change where packets go.
 */
export function overlaid(base: Snapshot, readings: readonly Reading[]): Snapshot {
  const services = new Map<ServiceName, Service | null>();
  const slices = new Map<ServiceName, Slice[]>();
  let { node } = base;
  for (const { kind, who, parsed } of readings) {
    if (kind === "Service") services.set(who.key, parsed.value);
    else if (kind === "Node" && who.name === node?.name) node = parsed.value ?? node;
    else if (kind === "EndpointSlice" && parsed.slice.value !== null) {
      const slice = parsed.slice.value;
      slices.set(slice.owner, [...(slices.get(slice.owner) ?? []), slice]);
    }
  }
  const names = new Set([...services.keys(), ...slices.keys()]);
  const familyOf = (family: Family) => {
    const before = portsByService(base[family].ports.values(), names);
    const changes = new Map<string, ServicePort | undefined>();
    for (const name of names) {
      const old = before.get(name) ?? [];
      for (const { key } of old) changes.set(key, undefined);
      const wanted = services.has(name) ? (services.get(name)?.[family] ?? []) : old.map(withoutEndpoints);
      const added = slices.get(name)?.sort((a, b) => (a.key < b.key ? -1 : 1));
      const kept = (port: ServicePort) => ({
        ...port,
        endpoints: base[family].ports.get(port.key)?.endpoints ?? [],
      });
      for (const port of added === undefined ? wanted.map(kept) : joinEndpoints(wanted, added))
        changes.set(port.key, port);
    }
    return { ...base[family], ports: base[family].ports.with(changes), changed: new Set(changes.keys()) };
  };
  const [ipv4, ipv6] = families.map(familyOf);
  return { ...base, ipv4: ipv4!, ipv6: ipv6!, node };
}

function withoutEndpoints(port: ServicePort): ServicePort {
  return { ...port, endpoints: [] };
}

function portsByService(
  ports: Iterable<ServicePort>,
  names: ReadonlySet<ServiceName>,
): ReadonlyMap<ServiceName, readonly ServicePort[]> {
  const found = new Map<ServiceName, ServicePort[]>();
  for (const port of ports)
    if (names.has(port.service)) found.set(port.service, [...(found.get(port.service) ?? []), port]);
  return found;
}
