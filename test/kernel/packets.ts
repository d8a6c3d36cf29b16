// Packets made by hand: SCTP without SCTP sockets, ICMP echoes, and frames that no socket would send.
import { addressBytes } from "../../src/model/address.ts";
import type { Endpoint } from "./libc.ts";

const INIT = 1;
const INIT_ACK = 2;

/** The first packet of an SCTP association. */
export function sctpInit(sourcePort: number, port: number): Buffer {
  return sctp(sourcePort, port, 0, initChunk(INIT, sourcePort, Buffer.alloc(0)));
}

/** The answer to a packet of `sctpInit`, carrying a text; null when the packet is none. */
export function sctpAnswer(packet: Buffer, text: string): Buffer | null {
  if (packet.length < 20 || packet[12] !== INIT) return null;
  const parameter = Buffer.alloc(4 + ((text.length + 3) & ~3));
  parameter.writeUInt16BE(0x8abc, 0); // unknown to all: skipped, not reported
  parameter.writeUInt16BE(4 + text.length, 2);
  parameter.write(text, 4);
  const tag = packet.readUInt32BE(16);
  return sctp(
    packet.readUInt16BE(2),
    packet.readUInt16BE(0),
    tag,
    initChunk(INIT_ACK, ~tag >>> 0, parameter),
  );
}

/** The text inside an answer to the association that started from this port; null for any other packet. */
export function sctpText(packet: Buffer, ownPort: number): string | null {
  if (packet.length < 36 || packet.readUInt16BE(2) !== ownPort || packet[12] !== INIT_ACK) return null;
  return packet.subarray(36, 32 + packet.readUInt16BE(34)).toString();
}

export function icmpEcho(type: number, id: number): Buffer {
  const packet = Buffer.alloc(16);
  packet[0] = type;
  packet.writeUInt16BE(id, 4);
  packet.writeUInt16BE(internetChecksum(packet), 2);
  return packet;
}

/** An Ethernet frame with the first packet of a TCP connection over IPv4. */
export function tcpSynFrame(toMac: string, fromMac: string, from: Endpoint, to: Endpoint): Buffer {
  const tcp = Buffer.alloc(20);
  tcp.writeUInt16BE(from.port, 0);
  tcp.writeUInt16BE(to.port, 2);
  tcp.writeUInt32BE(1, 4);
  tcp[12] = 0x50;
  tcp[13] = 0x02;
  tcp.writeUInt16BE(64240, 14);
  const [source, destination] = [addressBytes(from.address)!, addressBytes(to.address)!];
  const pseudo = Buffer.concat([source, destination, Buffer.from([0, 6, 0, tcp.length]), tcp]);
  tcp.writeUInt16BE(internetChecksum(pseudo), 16);
  const ip = Buffer.from([0x45, 0, 0, 40, 0, 1, 0x40, 0, 64, 6, 0, 0, ...source, ...destination]);
  ip.writeUInt16BE(internetChecksum(ip), 10);
  return Buffer.concat([macBytes(toMac), macBytes(fromMac), Buffer.from([8, 0]), ip, tcp]);
}

/** A TCP packet that both opens and ends a connection, with a wrong checksum: no state fits it. */
export function senseless(sourcePort: number, port: number): Buffer {
  const packet = Buffer.alloc(20);
  packet.writeUInt16BE(sourcePort, 0);
  packet.writeUInt16BE(port, 2);
  packet[12] = 0x50;
  packet[13] = 0x03;
  return packet;
}

/** An IPv4 packet without its header. */
export function withoutIPv4Header(packet: Buffer): Buffer {
  return packet.subarray((packet[0]! & 15) * 4);
}

function sctp(sourcePort: number, port: number, tag: number, chunk: Buffer): Buffer {
  const packet = Buffer.concat([Buffer.alloc(12), chunk]);
  packet.writeUInt16BE(sourcePort, 0);
  packet.writeUInt16BE(port, 2);
  packet.writeUInt32BE(tag, 4);
  packet.writeUInt32LE(crc32c(packet), 8);
  return packet;
}

function initChunk(type: number, tag: number, parameters: Buffer): Buffer {
  const chunk = Buffer.alloc(20);
  chunk[0] = type;
  chunk.writeUInt16BE(20 + parameters.length, 2);
  chunk.writeUInt32BE(tag, 4);
  chunk.writeUInt32BE(65536, 8);
  chunk.writeUInt16BE(1, 12);
  chunk.writeUInt16BE(1, 14);
  chunk.writeUInt32BE(1, 16);
  return Buffer.concat([chunk, parameters]);
}

function internetChecksum(bytes: Buffer): number {
  let sum = 0;
  for (let i = 0; i < bytes.length; i += 2) sum += (bytes[i]! << 8) | (bytes[i + 1] ?? 0);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return ~sum & 0xffff;
}

function crc32c(bytes: Buffer): number {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let i = 0; i < 8; i++) crc = (crc >>> 1) ^ (crc & 1 ? 0x82f63b78 : 0);
  }
  return ~crc >>> 0;
}

function macBytes(mac: string): Buffer {
  return Buffer.from(mac.replaceAll(":", ""), "hex");
}
