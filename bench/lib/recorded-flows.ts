// A dump of the conntrack table that is kept, and replayed as often as a benchmark wants.
import { type Datagram, dump } from "../../src/host/netlink/dump.ts";
import { endMessage, flag } from "../../src/host/netlink/message.ts";
import { beginNetfilter, subsystem } from "../../src/host/netlink/netfilter.ts";
import { Writer } from "../../src/host/netlink/writer.ts";
import type { Namespace } from "../../test/kernel/netns.ts";

export async function recordFlows(netns: Namespace): Promise<Datagram[]> {
  const out = new Writer(128);
  const at = beginNetfilter(out, (subsystem.conntrack << 8) | 1, flag.request | flag.dump, 1, "ip");
  endMessage(out, at);
  const datagrams: Datagram[] = [];
  for await (const { buffer, length } of dump("netfilter", "record flows", out.bytes(), {
    netns: netns.path,
  }))
    datagrams.push({ buffer: Buffer.from(buffer.subarray(0, length)), length });
  return datagrams;
}

export async function* replay(datagrams: readonly Datagram[], times: number): AsyncGenerator<Datagram> {
  for (let i = 0; i < times; i++) yield* datagrams;
}
