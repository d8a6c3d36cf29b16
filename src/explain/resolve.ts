// From the question to the packet: Services and NodePorts become addresses of this node's Routes.
import { closest } from "../config/closest.ts";
import { type Parsed, parsed, refused } from "../config/units/parsed.ts";
import { type Address, contains, type Family, families, familyOf, isLoopback } from "../model/address.ts";
import type { ServicePort } from "../model/snapshot.ts";
import type { Packet } from "../routing/decide.ts";
import type { Routes } from "../routing/routes.ts";
import { type From, outsideExample, type To } from "./question.ts";

export type BothRoutes = Readonly<Record<Family, Routes>>;

/** A sender whose name was looked up. */
export type Sender = Exclude<From, { kind: "named" }>;

export type Question = { readonly family: Family; readonly packet: Packet };

export function questionOf(from: Sender, to: To, routes: BothRoutes): Parsed<Question> {
  const destination = destinationOf(from, to, routes);
  if (!destination.ok) return destination;
  const family = familyOf(destination.value.address);
  const address = sourceAddress(from, family, routes[family], destination.value.address);
  if (familyOf(address) !== family) {
    const twins = { ipv4: "IPv4", ipv6: "IPv6" } as const;
    return refused(
      `${address} cannot reach ${destination.value.address}: ${twins[familyOf(address)]} and ${twins[family]} do not mix`,
    );
  }
  return parsed({
    family,
    packet: { from: { origin: originOf(from, address, routes[family]), address }, to: destination.value },
  });
}

function destinationOf(from: Sender, to: To, routes: BothRoutes): Parsed<Packet["to"]> {
  switch (to.kind) {
    case "address":
      return parsed({ address: to.address, port: to.port, protocol: to.protocol });
    case "nodePort": {
      const family = from.kind === "node" ? "ipv4" : familyOf(from.address);
      return parsed({ address: routes[family].settings.nodeIP, port: to.port, protocol: to.protocol });
    }
    case "service": {
      const family = from.kind === "node" ? null : familyOf(from.address);
      return clusterAddress(to, routes, family);
    }
  }
}

function clusterAddress(
  to: Extract<To, { kind: "service" }>,
  routes: BothRoutes,
  family: Family | null,
): Parsed<Packet["to"]> {
  const isNamed = (port: ServicePort) =>
    port.name === to.name && (to.namespace === null || port.namespace === to.namespace);
  // Sorted: the map is in no particular order, and where several ports fit, the first is used.
  const all = families.flatMap((each) =>
    [...routes[each].servicePorts.values()].filter(isNamed).sort((a, b) => (a.key < b.key ? -1 : 1)),
  );
  const [service, ...others] = [...new Set(all.map((port) => port.service))].sort();
  if (service === undefined) {
    const wanted = to.namespace === null ? to.name : `${to.namespace}/${to.name}`;
    return refused(`there is no Service ${wanted} that Turnout serves${similar(wanted, routes)}`);
  }
  if (others.length > 0)
    return refused(
      `${others.length + 1} Services are named ${to.name}: use svc/${[service, ...others].join(" or svc/")}`,
    );
  const inFamily = all.filter((port) => family === null || port.family === family);
  const candidates = inFamily.length === 0 ? all : inFamily;
  const found = candidates.filter(
    ({ port, portName, protocol }) =>
      (to.port === null || String(port) === to.port || portName === to.port) &&
      (to.protocol === null || protocol === to.protocol),
  );
  const first = found[0];
  if (first === undefined)
    return refused(
      `Service ${service} has no port ${to.port}${to.protocol === null ? "" : `/${to.protocol}`}; it has ${portList(candidates)}`,
    );
  if (to.port === null && new Set(found.map(({ key }) => key)).size > 1)
    return refused(`Service ${service} has several ports; use one of ${portList(candidates)}`);
  return parsed({ address: first.clusterIP, port: first.port, protocol: first.protocol });
}

function portList(ports: readonly ServicePort[]): string {
  return [
    ...new Set(
      ports.map(
        ({ port, portName, protocol }) => `${port}/${protocol}${portName === "" ? "" : ` (${portName})`}`,
      ),
    ),
  ].join(", ");
}

function similar(service: string, routes: BothRoutes): string {
  const name = service.slice(service.indexOf("/") + 1);
  const known = new Set(
    families.flatMap((each) => [...routes[each].servicePorts.values()]).map(({ service }) => service),
  );
  const namesakes = [...known].filter((each) => each.endsWith(`/${name}`)).sort();
  const near = closest(service, known);
  const close = namesakes.length > 0 || near === null ? namesakes : [near];
  if (close.length > 0) return `; did you mean svc/${close.join(", svc/")}?`;
  const [inside] = [...known].filter((each) => each.startsWith(`${name}/`)).sort();
  return inside === undefined ? "" : `; ${name} is a namespace; use for example svc/${inside}`;
}

/** The node sends to itself from the very address it sends to. */
function sourceAddress(from: Sender, family: Family, { settings }: Routes, to: Address): Address {
  if (from.kind === "outside" && from.anybody) return outsideExample[family];
  if (from.kind === "pod" && from.otherAddress !== undefined && familyOf(from.address) !== family)
    return from.otherAddress;
  if (from.kind !== "node") return from.address;
  const isOwn = isLoopback(to) || (settings.family === family && settings.localAddresses.includes(to));
  return isOwn ? to : settings.nodeIP;
}

/** A pod of another node comes in from elsewhere. */
function originOf(
  from: Sender,
  address: Address,
  { settings, servicePorts }: Routes,
): Packet["from"]["origin"] {
  if (from.kind === "node") return "node";
  if (from.kind === "outside") return "elsewhere";
  const { detector, nodeName } = settings;
  if (detector.kind === "cidr") return contains(detector.cidr, address) ? "pod" : "elsewhere";
  const nodes = new Set<string>();
  for (const { endpoints } of servicePorts.values())
    for (const endpoint of endpoints) if (endpoint.address === address) nodes.add(endpoint.nodeName);
  return nodes.size === 0 || nodes.has(nodeName) ? "pod" : "elsewhere";
}
