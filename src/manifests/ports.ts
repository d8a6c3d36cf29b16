// Port entries of Services and EndpointSlices: a name, a protocol, a number.
import { quoted } from "../model/problem.ts";
import type { Protocol } from "../model/snapshot.ts";
import { isName } from "./identity.ts";
import type { Raw } from "./objects.ts";
import { addProblem, fields, list, placesIn, portNumber, type Report, text } from "./read.ts";

const servicePlace = placesIn("spec.ports");
const slicePlace = placesIn("ports");

/** One entry of `spec.ports`. */
export type Port = {
  readonly portName: string;
  readonly protocol: Protocol;
  readonly port: number;
  readonly nodePort: number;
};

/** Of two ports with the same name and protocol the last one counts. */
export function servicePortsOf(report: Report, spec: Raw): readonly Port[] {
  const ports = list(report, spec.ports, "spec", "ports").map((item, i) => {
    const at = servicePlace(i);
    return portOf(report, fields(report, item, "", at), at);
  });
  return ports.length === 1 && ports.every(isPort) ? ports : lastOfEachName(report, ports);
}

function portOf(report: Report, raw: Raw, at: string): Port | null {
  const port = slicePortOf(report, raw, at);
  const nodePort = raw.nodePort === 0 ? 0 : (portNumber(report, raw.nodePort, at, "nodePort") ?? 0);
  if (port === null) return null;
  return { portName: port.portName, protocol: port.protocol, port: port.port, nodePort };
}

function lastOfEachName(report: Report, ports: readonly (Port | null)[]): readonly Port[] {
  const byName = new Map<string, Port>();
  for (const [i, port] of ports.entries()) {
    if (port === null) continue;
    const name = `${port.protocol}/${port.portName}`;
    if (byName.has(name)) {
      const message = "repeats the name and protocol of an earlier port and replaces it";
      addProblem(report, "conflict", servicePlace(i), message);
    }
    byName.set(name, port);
  }
  return [...byName.values()];
}

/** One entry of `ports` of a slice. */
export type SlicePort = Omit<Port, "nodePort">;

/** Several entries may have the same name and protocol: all their numbers count. Slices with the same few ports share one list. */
export function slicePortsOf(report: Report, slice: Raw): readonly SlicePort[] {
  const ports = list(report, slice.ports, "", "ports").map((item, i) =>
    slicePortOf(report, fields(report, item, "", slicePlace(i)), slicePlace(i)),
  );
  return shared(ports.every(isPort) ? ports : ports.filter(isPort));
}

function shared(ports: readonly SlicePort[]): readonly SlicePort[] {
  if (ports.length > mostShared) return ports;
  const text = ports.map(({ portName, protocol, port }) => `${portName}/${protocol}/${port}`).join(" ");
  const known = sharedLists.get(text);
  if (known !== undefined) return known;
  if (sharedLists.size >= sharedAtMost) sharedLists.clear();
  sharedLists.set(text, ports);
  return ports;
}

/** Lists are kept after their slices are gone, so their number and length are limited. */
const sharedLists = new Map<string, readonly SlicePort[]>();
const sharedAtMost = 10_000;
const mostShared = 8;

function isPort<P extends SlicePort>(port: P | null): port is P {
  return port !== null;
}

function slicePortOf(report: Report, raw: Raw, at: string): SlicePort | null {
  const portName = portNameOf(report, raw.name, at);
  const protocol = protocolOf(report, raw.protocol, at);
  // A port without a number does not mean "all ports".
  const port = portNumber(report, raw.port ?? 0, at, "port");
  return portName === null || protocol === null || port === null ? null : { portName, protocol, port };
}

/** Absent means the empty name, as the API server fills in; null, with a Problem, when it is illegal. */
function portNameOf(report: Report, value: unknown, at: string): string | null {
  const name = text(report, value, at, "name");
  if (name === "" || isName(name)) return name;
  addProblem(
    report,
    "invalid-name",
    `${at}.name`,
    `is ${quoted(name)}, not a legal name; the port is ignored`,
  );
  return null;
}

const protocolNames: Readonly<Record<string, Protocol>> = { TCP: "tcp", UDP: "udp", SCTP: "sctp" };

/** Absent means TCP, the API server's default; null, with a Problem, when it is unknown. */
function protocolOf(report: Report, value: unknown, at: string): Protocol | null {
  const written = text(report, value, at, "protocol") || "TCP";
  const protocol = Object.hasOwn(protocolNames, written) ? protocolNames[written]! : null;
  if (protocol === null) {
    const message = `is ${quoted(written)}, not TCP, UDP or SCTP; the port is ignored`;
    addProblem(report, "invalid-protocol", `${at}.protocol`, message);
  }
  return protocol;
}
