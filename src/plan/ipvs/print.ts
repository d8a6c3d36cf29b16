// A Plan in the syntax of the tools that show it: `ipvsadm`, `ip`, `ipset` and `iptables-save`.
import { hostCidr, joinHostPort } from "../../model/address.ts";
import type { Protocol } from "../../model/snapshot.ts";
import { print as printTables } from "../iptables/print.ts";
import { destinationKey, serverKey } from "./names.ts";
import {
  type IpSet,
  type IpvsPlan,
  linkName,
  type Operation,
  type ServerId,
  serverFlag,
  type WantedServer,
} from "./types.ts";

/** The whole Plan, sorted: what `ipvsadm -R`, `ip -b`, `ipset restore` and `iptables-restore` would make, part by part. */
export function print(plan: IpvsPlan): string {
  return [
    "# ipvsadm -Sn",
    ...printServers(plan),
    `# ip address, on ${linkName}`,
    ...[...plan.addresses.keys()].sort().map((address) => `address add ${hostCidr(address)} dev ${linkName}`),
    "# ipset save",
    ...printSets(plan),
    `# ${plan.family === "ipv4" ? "iptables" : "ip6tables"}-save`,
    printTables(plan.tables),
  ].join("\n");
}

/** One Operation in a line. */
export function printOperation(operation: Operation): string {
  switch (operation.kind) {
    case "add link":
    case "delete link":
      return operation.kind;
    case "add address":
    case "delete address":
      return `${operation.kind} ${operation.address}`;
    case "add server":
    case "set server":
    case "delete server":
      return `${operation.kind} ${serverKey(operation.server)}`;
    case "add destination":
    case "set destination": {
      const { server, destination } = operation;
      return `${operation.kind} ${serverKey(server)} ${destinationKey(destination)} weight ${destination.weight}`;
    }
    case "delete destination":
      return `${operation.kind} ${serverKey(operation.server)} ${destinationKey(operation.destination)}`;
    case "create set":
      return `${operation.kind} ${operation.set.name}`;
    case "destroy set":
      return `${operation.kind} ${operation.set}`;
    case "add entry":
    case "delete entry":
      return `${operation.kind} ${operation.set} ${operation.entry}`;
  }
}

function printServers({ servers }: IpvsPlan): string[] {
  return [...servers.entries()]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([, claims]) => {
      const { server } = claims[0]!;
      const real = [...server.destinations.keys()].sort();
      return [
        `-A ${placeOf(server)} ${optionsOf(server)}`,
        ...real.map((key) => `-a ${placeOf(server)} -r ${key} -m -w 1`),
      ];
    });
}

const protocolOption = { tcp: "-t", udp: "-u", sctp: "--sctp-service" } as const satisfies Record<
  Protocol,
  string
>;

function placeOf({ address, port, protocol }: ServerId): string {
  return `${protocolOption[protocol]} ${joinHostPort(address, port)}`;
}

function optionsOf({ scheduler, flags, timeoutSeconds }: WantedServer): string {
  const persistent = (flags & serverFlag.persistent) === 0 ? "" : ` -p ${timeoutSeconds}`;
  const hashing = (flags & serverFlag.hashSourcePort) === 0 ? "" : " -b mh-port";
  return `-s ${scheduler}${persistent}${hashing}`;
}

function printSets({ sets, entries }: IpvsPlan): string[] {
  const added = [...entries.keys()].sort().map((key) => `add ${key}`);
  return [...sets]
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((set) => [
      `create ${set.name} ${parametersOf(set)}`,
      ...added.filter((line) => line.startsWith(`add ${set.name} `)),
    ]);
}

function parametersOf({ type, family }: IpSet): string {
  if (type === "bitmap:port") return `${type} range 0-65535`;
  return `${type} family ${family === "ipv4" ? "inet" : "inet6"} hashsize 1024 maxelem 65536`;
}
