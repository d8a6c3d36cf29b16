// Puts many UDP flows into a namespace's connection tracking, thousands with one write.
import { addFlag, endMessage, flag } from "../../src/host/netlink/message.ts";
import { beginNetfilter, subsystem } from "../../src/host/netlink/netfilter.ts";
import { withSocket } from "../../src/host/netlink/socket.ts";
import { Writer } from "../../src/host/netlink/writer.ts";
import type { Namespace } from "./netns.ts";

const NEW = subsystem.conntrack << 8;
const create = 0x400;
const together = 2000;

/** Flow `n` was sent by a client of its own to 172.30.0.10:53, and is answered by 10.0.1.5:53. */
export async function insertFlows(netns: Namespace, count: number): Promise<void> {
  await withSocket("netfilter", { netns: netns.path }, async (socket) => {
    for (let from = 0; from < count; from += together) {
      const out = new Writer(together * 160);
      let last = 0;
      for (let n = from; n < Math.min(count, from + together); n++) last = writeNew(out, n);
      addFlag(out, last, flag.acknowledge);
      const { answers } = await socket.exchange(out.bytes());
      const failed = answers.find(({ errno }) => errno !== 0);
      if (failed !== undefined) throw new Error(`Cannot insert flows: errno ${failed.errno}`);
    }
  });
}

function writeNew(out: Writer, n: number): number {
  const at = beginNetfilter(out, NEW, flag.request | create, n + 1, "ip");
  const client = { address: 0x0a800000 + (n >> 14), port: 20_000 + (n & 0x3fff) };
  writeTuple(out, 1, client, { address: 0xac1e000a, port: 53 });
  writeTuple(out, 2, { address: 0x0a000105, port: 53 }, client);
  const timeout = out.begin(7);
  out.u32be(600);
  out.end(timeout);
  endMessage(out, at);
  return at;
}

type Place = { readonly address: number; readonly port: number };

function writeTuple(out: Writer, direction: number, from: Place, to: Place): void {
  const tuple = out.nest(direction);
  const addresses = out.nest(1);
  for (const [i, { address }] of [from, to].entries()) {
    const at = out.begin(i + 1);
    out.u32be(address);
    out.end(at);
  }
  out.end(addresses);
  const protocol = out.nest(2);
  const number = out.begin(1);
  out.u8(17);
  out.end(number);
  for (const [i, { port }] of [from, to].entries()) {
    const at = out.begin(i + 2);
    out.u16be(port);
    out.end(at);
  }
  out.end(protocol);
  out.end(tuple);
}
