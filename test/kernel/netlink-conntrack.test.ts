// Connection tracking over netlink: flows made with the conntrack tool are read, chosen and deleted.
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  cleanFlows,
  deleteFlows,
  type Flow,
  FlowCleaner,
  type FlowQuery,
  readFlows,
} from "../../src/host/netlink/conntrack.ts";
import type { FlowPart } from "../../src/host/netlink/flow.ts";
import { openSocket } from "../../src/host/netlink/socket.ts";
import { insertFlows } from "./insert-flows.ts";
import { createNamespace, isRoot, type Namespace } from "./netns.ts";

const udp = 17;

describe.runIf(isRoot)("conntrack over netlink", () => {
  let here: Namespace;
  beforeEach(() => {
    here = createNamespace();
  });
  afterEach(() => here.remove());

  it("reads flows with both tuples, of one protocol and family", async () => {
    add("10.0.0.1", 4000, "172.30.0.10", 53, "10.0.1.5", 5353);
    add("fd00::1", 4000, "fd30::10", 53, "fd00:1::5", 5353);
    here.run(
      "conntrack",
      ...`-I -p tcp -s 10.0.0.1 -d 172.30.0.10 --sport 1 --dport 53 -t 60 --state ESTABLISHED`.split(" "),
    );
    expect(await flows({ family: "ipv4", protocol: udp, select: () => true })).toMatchObject([
      {
        family: "ipv4",
        protocol: udp,
        zone: 0,
        original: { source: "10.0.0.1", sourcePort: 4000, destination: "172.30.0.10", destinationPort: 53 },
        reply: { source: "10.0.1.5", sourcePort: 5353, destination: "10.0.0.1", destinationPort: 4000 },
      },
    ]);
    expect(await flows({ family: "ipv6", select: () => true })).toMatchObject([
      { original: { destination: "fd30::10" }, reply: { source: "fd00:1::5" } },
    ]);
    expect(await flows({ family: "ipv4", select: () => true })).toHaveLength(2);
  });

  it("lets the kernel drop other protocols before they are sent to us", async () => {
    for (let i = 0; i < 20; i++) add("10.0.0.1", 4000 + i, "172.30.0.10", 53, "10.0.1.5", 53);
    here.run(
      "conntrack",
      ...`-I -p tcp -s 10.0.0.1 -d 172.30.0.10 --sport 1 --dport 53 -t 60 --state ESTABLISHED`.split(" "),
    );
    const { examined } = await cleanFlows(
      { family: "ipv4", protocol: 6, select: () => false },
      { netns: here.path },
    );
    expect(examined).toBe(1);
  });

  it("lets the kernel find flows by where they were sent, or by who answers", async () => {
    add("10.0.0.1", 4000, "172.30.0.10", 53, "10.0.1.5", 5353);
    add("10.0.0.1", 4001, "172.30.0.10", 53, "10.0.1.6", 5353);
    add("10.0.0.1", 4002, "172.30.0.10", 54, "10.0.1.5", 5353);
    add("10.0.0.1", 4003, "10.0.1.6", 53, "10.0.1.6", 53);
    const cleaner = new FlowCleaner({ netns: here.path });
    const examined = async (...among: readonly FlowPart[]) =>
      (await cleaner.clean({ family: "ipv4", protocol: udp, among, select: () => false })).examined;
    expect(await examined({ kind: "sent to", address: "172.30.0.10", port: 53 })).toBe(2);
    expect(await examined({ kind: "sent to", address: null, port: 53 })).toBe(3);
    expect(await examined({ kind: "answered by", address: "10.0.1.5", port: 5353 })).toBe(2);
    expect(await examined({ kind: "answered by", address: "10.0.1.6", port: 53 })).toBe(1);
    expect(await examined()).toBe(0);
    expect(cleaner.used).toEqual({ sockets: 1, dumps: 4 });
    await cleaner.close();
  });

  it("reads all IPv6 flows, because the kernel's filter for their addresses is inverted", async () => {
    add("fd00::1", 4000, "fd30::10", 53, "fd00:1::5", 5353);
    add("fd00::1", 4001, "fd30::11", 53, "fd00:1::6", 5353);
    const among: readonly FlowPart[] = [{ kind: "answered by", address: "fd00:1::5", port: 5353 }];
    const select: FlowQuery["select"] = ({ replySource }) => replySource === "fd00:1::5";
    const query: FlowQuery = { family: "ipv6", protocol: udp, among, select };
    expect(await cleanFlows(query, { netns: here.path })).toEqual({
      examined: 2,
      deleted: 1,
      complete: true,
    });
  });

  it("finds flows part by part where many are tracked, and else reads all of them", async () => {
    const cleaner = new FlowCleaner({ netns: here.path });
    const among: readonly FlowPart[] = [
      { kind: "answered by", address: "10.0.1.6", port: 53 },
      { kind: "sent to", address: "172.30.0.11", port: 53 },
    ];
    const clean = () => cleaner.clean({ family: "ipv4", protocol: udp, among, select: () => true });
    const stale = () => {
      add("10.0.0.1", 4000, "172.30.0.10", 53, "10.0.1.6", 53);
      add("10.0.0.1", 4001, "172.30.0.11", 53, "10.0.1.5", 53);
    };
    stale();
    expect(await clean()).toEqual({ examined: 2, deleted: 2, complete: true });
    expect(cleaner.used.dumps).toBe(1);
    await insertFlows(here, 10_000);
    stale();
    expect(await clean()).toEqual({ examined: 2, deleted: 2, complete: true });
    expect(cleaner.used.dumps).toBe(3);
    await cleaner.close();
  });

  it("deletes what is selected and nothing else", async () => {
    for (let i = 0; i < 50; i++)
      add("10.0.0.1", 4000 + i, "172.30.0.10", 53, `10.0.1.${i % 2 ? 5 : 6}`, 5353);
    add("10.0.0.1", 9, "172.30.0.11", 53, "10.0.1.5", 5353);
    const stale: FlowQuery = {
      family: "ipv4",
      protocol: udp,
      select: (flow) =>
        flow.destinationPort === 53 && flow.destination === "172.30.0.10" && flow.replySource !== "10.0.1.5",
    };
    expect(await cleanFlows(stale, { netns: here.path })).toEqual({
      examined: 51,
      deleted: 25,
      complete: true,
    });
    const left = await flows({ family: "ipv4", select: () => true });
    expect(left).toHaveLength(26);
    expect(new Set(left.map(({ reply }) => reply.source))).toEqual(new Set(["10.0.1.5"]));
  });

  it("deletes a flow in its zone only, and takes one that is gone for deleted by another", async () => {
    add("10.0.0.1", 1, "172.30.0.10", 53, "10.0.1.5", 53);
    add("10.0.0.1", 1, "172.30.0.10", 53, "10.0.1.6", 53, "--zone", "7");
    const zoned = (await flows({ family: "ipv4", select: () => true })).filter(({ zone }) => zone === 7);
    const socket = await openSocket("netfilter", { netns: here.path });
    expect(await deleteFlows(socket, zoned)).toBe(1);
    expect(await deleteFlows(socket, zoned)).toBe(0);
    await socket.close();
    expect(await flows({ family: "ipv4", select: () => true })).toMatchObject([{ zone: 0 }]);
  });

  it("does not delete a later flow that was sent elsewhere", async () => {
    const socket = await openSocket("netfilter", { netns: here.path });
    // Several times, since the new flow may lie where the old one lay in memory, and then has the same id.
    for (let i = 0; i < 20; i++) {
      add("10.0.0.1", 1, "172.30.0.10", 53, "10.0.1.5", 53);
      const before = await flows({ family: "ipv4", select: () => true });
      here.run("conntrack", "-F");
      add("10.0.0.1", 1, "172.30.0.10", 53, "10.0.1.9", 53);
      expect(await deleteFlows(socket, before)).toBe(0);
      expect(await flows({ family: "ipv4", select: () => true })).toMatchObject([
        { reply: { source: "10.0.1.9" } },
      ]);
      here.run("conntrack", "-F");
    }
    await socket.close();
  });

  it("reads the table again and again over one socket, and opens another only to delete", async () => {
    const cleaner = new FlowCleaner({ netns: here.path });
    const clean = (address: string) =>
      cleaner.clean({ family: "ipv4", protocol: udp, select: ({ replySource }) => replySource === address });
    for (let i = 0; i < 10; i++) await clean("10.0.1.9");
    expect(cleaner.used).toEqual({ sockets: 1, dumps: 10 });
    for (let i = 0; i < 10; i++) {
      add("10.0.0.1", 4000, "172.30.0.10", 53, "10.0.1.5", 53);
      expect((await clean("10.0.1.5")).deleted).toBe(1);
    }
    expect(cleaner.used).toEqual({ sockets: 2, dumps: 20 });
    await cleaner.close();
    expect(openNetlinkSockets(here)).toBe(0);
    expect((await clean("10.0.1.5")).deleted).toBe(0);
    expect(cleaner.used.sockets).toBe(3);
    await cleaner.close();
  });

  it("does not read the rest of a dump that was aborted", async () => {
    await insertFlows(here, 3000);
    const cleaner = new FlowCleaner({ netns: here.path });
    const stop = new AbortController();
    const select = () => {
      stop.abort(new Error("enough"));
      return false;
    };
    await expect(cleaner.clean({ family: "ipv4", select }, stop.signal)).rejects.toThrow("enough");
    expect(openNetlinkSockets(here)).toBe(0);
    const { examined } = await cleaner.clean({ family: "ipv4", select: () => false });
    expect(examined).toBe(3000);
    await cleaner.close();
  });

  it("stops on abort", async () => {
    const signal = AbortSignal.abort(new Error("enough"));
    await expect(
      cleanFlows({ family: "ipv4", select: () => true }, { netns: here.path }, signal),
    ).rejects.toThrow("enough");
  });

  /** Of this process, in that namespace. */
  function openNetlinkSockets(netns: Namespace): number {
    const own = new Set(
      readdirSync("/proc/self/fd").map((fd) => /^socket:\[(\d+)\]$/.exec(linkOf(`/proc/self/fd/${fd}`))?.[1]),
    );
    const lines = netns.inside(() => readFileSync("/proc/thread-self/net/netlink", "utf8")).split("\n");
    return lines.filter((line) => own.has(line.trim().split(/\s+/).at(-1))).length;
  }

  async function flows(query: FlowQuery): Promise<Flow[]> {
    const found: Flow[] = [];
    for await (const some of readFlows(query, { netns: here.path })) found.push(...some);
    return found;
  }

  function add(
    source: string,
    sourcePort: number,
    destination: string,
    port: number,
    endpoint: string,
    endpointPort: number,
    ...more: string[]
  ): void {
    here.run(
      "conntrack",
      ...`-I -p udp -t 60 -s ${source} -d ${destination} --sport ${sourcePort} --dport ${port}`.split(" "),
      ...`-r ${endpoint} -q ${source} --reply-port-src ${endpointPort} --reply-port-dst ${sourcePort}`.split(
        " ",
      ),
      ...more,
    );
  }
});

/** Empty for a descriptor that is closed meanwhile. */
function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}
