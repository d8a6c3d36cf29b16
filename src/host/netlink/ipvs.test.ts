// Messages of IPVS: every attribute there and back, and the ways in which kernels send them.
import { describe, expect, it } from "vitest";
import { type Contents, readContents, readInformation, writeRequest } from "./ipvs.ts";
import { type Message, messagesIn } from "./message.ts";
import { Writer } from "./writer.ts";

describe("messages of IPVS", () => {
  const statistics = <Count>(count: (n: number) => Count) => ({
    connections: count(1),
    packetsIn: count(2),
    packetsOut: count(3),
    bytesIn: 2n ** 40n,
    bytesOut: 5n,
    connectionsPerSecond: count(6),
    packetsInPerSecond: count(7),
    packetsOutPerSecond: count(8),
    bytesInPerSecond: count(9),
    bytesOutPerSecond: count(10),
  });
  const everything: Contents = {
    service: {
      family: 2,
      protocol: 6,
      address: "\x0a\x60\0\x01",
      port: 443,
      mark: 0xdeadbeef,
      scheduler: "rr",
      flags: { flags: 0x11, mask: 0xffffffff },
      timeout: 10_800,
      netmask: 0xffffffff,
      statistics: statistics(Number),
      persistenceEngine: "sip",
      statistics64: statistics(BigInt),
    },
    destination: {
      address: "\x0a\0\0\x01",
      port: 8080,
      forwarding: 0,
      weight: 1,
      upperThreshold: 10,
      lowerThreshold: 5,
      active: 3,
      inactive: 4,
      persistent: 5,
      statistics: statistics(Number),
      family: 2,
      statistics64: statistics(BigInt),
      tunnelType: 1,
      tunnelPort: 4789,
      tunnelFlags: 2,
    },
    tcpTimeout: 900,
    tcpFinTimeout: 120,
    udpTimeout: 300,
  };

  it("20/46 holds every attribute there and back", () => {
    const { buffer, messages } = sent((out) => writeRequest(out, 28, 7, "newDestination", everything));
    expect(messages).toMatchObject([{ type: 28, sequence: 7, flags: 0x5 }]);
    expect(readContents(buffer, messages[0]!)).toEqual(everything);
  });

  it("20/46 skips unknown attributes", () => {
    const { buffer, messages } = sent((out) => {
      writeRequest(out, 28, 1, "getService", { service: { family: 10 } });
      const at = out.begin(99);
      out.u32(1);
      out.end(at);
      out.patchU32(0, out.length);
    });
    expect(readContents(buffer, messages[0]!)).toEqual({ service: { family: 10 } });
  });

  it("requests a dump with its own flags", () => {
    const { messages } = sent((out) => writeRequest(out, 28, 1, "getService", {}, "dump"));
    expect(messages).toMatchObject([{ flags: 0x301 }]);
  });

  it("reads the kernel's version and limits", () => {
    const { buffer, messages } = sent((out) => {
      writeRequest(out, 28, 1, "getInfo");
      for (const [type, value] of [
        [1, 0x00010201],
        [2, 4096],
      ] as const) {
        const at = out.begin(type);
        out.u32(value);
        out.end(at);
      }
      out.patchU32(0, out.length);
    });
    expect(readInformation(buffer, messages[0]!)).toEqual({ version: 0x00010201, connectionTableSize: 4096 });
  });
});

function sent(write: (out: Writer) => void): { buffer: Buffer; messages: Message[] } {
  const out = new Writer();
  write(out);
  const buffer = Buffer.from(out.bytes());
  return { buffer, messages: [...messagesIn(buffer, buffer.length)] };
}
