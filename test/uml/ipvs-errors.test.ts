// What a kernel with IPVS refuses, and that the host in memory refuses the same.
import { describe, expect, it } from "vitest";
import { destinationOf, serviceKey, serviceOf } from "../../src/host/ipvs/codec.ts";
import { MemoryIpvsHost } from "../../src/host/ipvs/memory.ts";
import { resolveFamily } from "../../src/host/netlink/generic.ts";
import {
  type Command,
  type Contents,
  ipvsFamilyName,
  type ServiceMessage,
  writeRequest,
} from "../../src/host/netlink/ipvs.ts";
import { errnoName } from "../../src/host/netlink/native.ts";
import { withSocket } from "../../src/host/netlink/socket.ts";
import { Writer } from "../../src/host/netlink/writer.ts";
import type { Destination, Operation, ServerId, VirtualServer } from "../../src/plan/ipvs/types.ts";
import { seeded } from "../reference/random.ts";
import { destination, ipvsNode, server, web, web6 } from "./ipvs-node.ts";

const { node, hosts } = ipvsNode();

const service = (id: ServerId, change: Partial<ServiceMessage> = {}): ServiceMessage => ({
  ...serviceOf({ ...id, scheduler: "rr", flags: 0, timeoutSeconds: 0 }),
  ...change,
});

describe("the errors of IPVS", () => {
  const missing = { ...web, port: 81 };
  const real = (change: Partial<Destination> = {}) =>
    destinationOf({ address: "10.0.0.1", port: 8080, weight: 1, ...change });
  const other = { address: "10.0.0.9" };
  const six = { service: service(web6, { netmask: 0 }) };
  const table: readonly [string, string, Command, Contents][] = [
    ["get a server that is not there", "ESRCH", "getService", { service: serviceKey(missing) }],
    ["set a server that is not there", "ESRCH", "setService", { service: service(missing) }],
    ["delete a server that is not there", "ESRCH", "delService", { service: serviceKey(missing) }],
    [
      "add a real server to a server that is not there",
      "ESRCH",
      "newDestination",
      { service: serviceKey(missing), destination: real() },
    ],
    ["add a server that is there", "EEXIST", "newService", { service: service(web) }],
    [
      "add a real server that is there",
      "EEXIST",
      "newDestination",
      { service: serviceKey(web), destination: real() },
    ],
    [
      "add a server with an unknown scheduler",
      "ENOENT",
      "newService",
      { service: service(missing, { scheduler: "nope" }) },
    ],
    [
      "set a server to an unknown scheduler",
      "ENOENT",
      "setService",
      { service: service(web, { scheduler: "nope" }) },
    ],
    [
      "set a real server that is not there",
      "ENOENT",
      "setDestination",
      { service: serviceKey(web), destination: real(other) },
    ],
    [
      "delete a real server that is not there",
      "ENOENT",
      "delDestination",
      { service: serviceKey(web), destination: real(other) },
    ],
    [
      "add an IPv6 real server to an IPv4 server",
      "EINVAL",
      "newDestination",
      { service: serviceKey(web), destination: real({ address: "fd00::1" }) },
    ],
    [
      "add a real server with a negative weight",
      "ERANGE",
      "newDestination",
      { service: serviceKey(web), destination: real({ ...other, weight: -1 }) },
    ],
    ["add an IPv6 server for every client", "EINVAL", "newService", six],
    ["set a timeout beyond measure", "EINVAL", "setConfig", { tcpTimeout: 2 ** 31 - 1 }],
    [
      "add a server with port 0",
      "none",
      "newService",
      { service: service({ ...web, port: 0 }, { flags: { flags: 1, mask: 0xffffffff } }) },
    ],
    ["add a server with protocol 0", "none", "newService", { service: service(web, { protocol: 0 }) }],
  ];
  it.each(table)("20/46 %s: %s", async (_, errno, command, contents) => {
    await hosts.ipv4.apply([server(web), destination(web, "10.0.0.1")]);
    expect(await errnoOf(command, contents)).toBe(errno);
  });

  it("20/46 a real server can only be read in a dump", async () => {
    expect(await errnoOf("getDestination", { service: serviceKey(web) })).toBe("EOPNOTSUPP");
  });
});

describe("the host in memory", () => {
  it("holds and refuses what the kernel holds and refuses", async () => {
    const memory = new MemoryIpvsHost("ipv4");
    for (const seed of [1, 2]) {
      const operations = randomOperations(seed);
      const [real, fake] = [await hosts.ipv4.apply(operations), await memory.apply(operations)];
      expect({ seed, failures: fake.failures }).toEqual({ seed, failures: real.failures });
      expect(await memory.read()).toEqual(await hosts.ipv4.read());
    }
  });
});

/** Few names, so that objects often exist, are gone, or are of another kind. */
function randomOperations(seed: number): Operation[] {
  const random = seeded(seed);
  const id = (): ServerId => ({
    address: random.one(["172.30.0.1", "172.30.0.2"]),
    port: random.one([80, 81]),
    protocol: random.one(["tcp", "udp"] as const),
  });
  const virtual = (): VirtualServer => ({
    ...id(),
    scheduler: random.one(["rr", "wlc", "nope", "a-name-that-is-too-long"]),
    ...random.one([
      { flags: 0, timeoutSeconds: 0 },
      { flags: 1, timeoutSeconds: 60 },
    ]),
  });
  const real = () => ({
    address: random.one(["10.0.0.1", "10.0.0.2", "fd00::1"]),
    port: 8080,
    weight: random.one([0, 1, 1, -1]),
  });
  const set = () => random.one(["KUBE-A", "KUBE-B"]);
  const entry = () => random.one(["10.0.0.1", "10.0.0.2"]);
  const address = () => random.one(["172.30.0.1", "172.30.0.2"]);
  const makers: readonly (() => Operation)[] = [
    () => ({ kind: "add link" }),
    () => ({ kind: random.one(["add address", "delete address"] as const), address: address() }),
    () => ({ kind: random.one(["add server", "set server"] as const), server: virtual() }),
    () => ({
      kind: random.one(["add server", "set server"] as const),
      server: { ...virtual(), scheduler: "rr" },
    }),
    () => ({ kind: "delete server", server: id() }),
    () => ({
      kind: random.one(["add destination", "set destination"] as const),
      server: id(),
      destination: real(),
    }),
    () => ({ kind: "add destination", server: id(), destination: real() }),
    () => ({ kind: "delete destination", server: id(), destination: real() }),
    () => ({
      kind: "create set",
      set: { name: set(), type: random.one(["hash:ip", "hash:ip", "bitmap:port"] as const), family: "ipv4" },
    }),
    () => ({ kind: random.one(["add entry", "delete entry"] as const), set: "KUBE-IP", entry: entry() }),
    () => ({ kind: "create set", set: { name: "KUBE-IP", type: "hash:ip", family: "ipv4" } }),
    () => ({ kind: "destroy set", set: set() }),
    () => ({ kind: "delete link" }),
  ];
  // Sets last: each change of program costs time.
  const made = Array.from({ length: 80 }, () => random.one(makers)());
  const isOfSets = ({ kind }: Operation) => kind.endsWith("set") || kind.endsWith("entry");
  return [...made.filter((operation) => !isOfSets(operation)), ...made.filter(isOfSets)];
}

async function errnoOf(command: Command, contents: Contents): Promise<string> {
  return withSocket("generic", { netns: node.path }, async (socket) => {
    const { id } = await resolveFamily(socket, ipvsFamilyName);
    const out = new Writer();
    writeRequest(out, id, 1, command, contents);
    const { answers } = await socket.exchange(out.bytes());
    return answers.map(({ errno }) => (errno === 0 ? "none" : errnoName(errno))).join();
  });
}
