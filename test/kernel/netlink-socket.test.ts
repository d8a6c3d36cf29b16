// The socket layer: consistent reads under change, a free event loop, clear errors, and processes that end when they should.
import { spawnSync } from "node:child_process";
import { closeSync, mkdtempSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { HostError } from "../../src/host/error.ts";
import type { Operation } from "../../src/host/netlink/batch.ts";
import { u32Bytes } from "../../src/host/netlink/bytes.ts";
import { dump } from "../../src/host/netlink/dump.ts";
import type { Element } from "../../src/host/netlink/elements.ts";
import { endMessage, flag, messagesIn } from "../../src/host/netlink/message.ts";
import { native } from "../../src/host/netlink/native.ts";
import { beginNetfilter } from "../../src/host/netlink/netfilter.ts";
import { codecs, verbType } from "../../src/host/netlink/nftables.ts";
import { declareSet } from "../../src/host/netlink/settypes.ts";
import { openSocket, protocolNumber } from "../../src/host/netlink/socket.ts";
import { transact } from "../../src/host/netlink/transaction.ts";
import { Writer } from "../../src/host/netlink/writer.ts";
import { createNamespace, isRoot, type Namespace } from "./netns.ts";
import { readElementsOf } from "./read-table.ts";

const at = { family: "ip", table: "t" } as const;

describe.runIf(isRoot)("netlink sockets", () => {
  let here: Namespace;
  beforeEach(() => {
    here = createNamespace();
  });
  afterEach(() => here.remove());
  const place = () => ({ netns: here.path });

  it("read a table as it was at one moment, however often it changes", async () => {
    const socket = await openSocket("netfilter", place());
    await transact(socket, filled(0, 4_000));
    let turn = 0;
    for (let i = 0; i < 20; i++) {
      const reading = readElementsOf("s", place());
      // Fewer changes than attempts: on a busy machine each may collide with a reader.
      for (let changes = 0; changes < 5; changes++) {
        await new Promise((resolve) => setTimeout(resolve, Math.random() * 30));
        await transact(socket, refilled(++turn, 4_000));
      }
      const elements = await reading;
      expect(elements).toHaveLength(4_000);
      expect(new Set(elements.map(({ key }) => key.charCodeAt(0))).size).toBe(1);
    }
    await socket.close();
  });

  it("leave the event loop free while the kernel works", async () => {
    const socket = await openSocket("netfilter", place());
    const operations = filled(0, 200_000);
    let ticks = 0;
    const ticking = setInterval(() => ticks++, 1);
    const before = ticks;
    await transact(socket, operations);
    const during = ticks - before;
    clearInterval(ticking);
    await socket.close();
    expect(during).toBeGreaterThan(10);
  });

  it("answer requests that are sent at the same time, each with its own outcome", async () => {
    const socket = await openSocket("netfilter", place());
    await transact(socket, filled(0, 10));
    const outcomes = await Promise.allSettled(
      Array.from({ length: 50 }, (_, i) =>
        transact(socket, i % 2 ? [add(u32Bytes(i))] : [{ kind: "deleteSet", set: { ...at, name: "none" } }]),
      ),
    );
    expect(outcomes.map(({ status }) => status === "fulfilled")).toEqual(outcomes.map((_, i) => i % 2 === 1));
    await socket.close();
  });

  it("report a refusal even when there are more than fit the buffer, and work afterwards", async () => {
    const socket = await openSocket("netfilter", place());
    await transact(socket, filled(0, 10));
    const none: Operation = { kind: "deleteSet", set: { ...at, name: "none" } };
    const error = await transact(socket, [
      add(u32Bytes(99)),
      ...Array.from({ length: 50_000 }, () => none),
    ]).catch((cause: unknown) => cause);
    expect(error).toMatchObject({ kind: "refused", errno: "ENOENT" });
    expect((error as HostError).refusals.length).toBeLessThan(50_000);
    await transact(socket, [add(u32Bytes(100))]);
    expect(await readElementsOf("s", place())).toHaveLength(11);
    await socket.close();
  });

  it("finish pending requests before they close", async () => {
    const socket = await openSocket("netfilter", place());
    const pending = [transact(socket, filled(0, 10)), transact(socket, [add(u32Bytes(100))])];
    await socket.close();
    await Promise.all(pending);
    expect(await readElementsOf("s", place())).toHaveLength(11);
  });

  it("read more than fits one buffer, each into its own buffer", async () => {
    const socket = await openSocket("netfilter", place());
    await transact(socket, filled(3, 120_000));
    const reading = Array.from({ length: 3 }, () => readElementsOf("s", place()));
    const wanted = new Set(keys(3, 120_000).map(({ key }) => key));
    for (const found of await Promise.all(reading)) {
      expect(found).toHaveLength(wanted.size);
      expect(found.every(({ key }) => wanted.has(key))).toBe(true);
    }
    await socket.close();
  });

  it("distinguish messages that fit from those that do not", async () => {
    const socket = await openSocket("netfilter", place());
    await transact(socket, filled(0, 2_000));
    await socket.close();
    const system = await native();
    const { fd } = system.open(protocolNumber.netfilter, here.path);
    try {
      const [small, large] = [system.datagrams(2, 32), system.datagrams(2, 4096)];
      expect(await system.receiveMany(fd, large)).toBe(0);
      writeSync(fd, allTables());
      expect(await system.receiveMany(fd, small)).toBe(2);
      expect([small.at(0), small.at(1)]).toEqual([null, { buffer: expect.any(Buffer), length: 20 }]);
      writeSync(fd, allTables());
      expect(await system.receiveMany(fd, large)).toBe(2);
      const { buffer, length } = large.at(0)!;
      expect([...messagesIn(buffer, length)]).toHaveLength(1);
      expect(length).toBeGreaterThan(32);
    } finally {
      closeSync(fd);
    }
  });

  it("stop a dump halfway, and work afterwards", async () => {
    const socket = await openSocket("netfilter", place());
    await transact(socket, filled(0, 50_000));
    const stop = new AbortController();
    setTimeout(() => stop.abort(new Error("enough")), 3);
    await expect(readElementsOf("s", place(), stop.signal)).rejects.toThrow("enough");
    expect(await readElementsOf("s", place())).toHaveLength(50_000);
    await socket.close();
  });

  it("report the cause", async () => {
    await expect(openSocket("netfilter", { netns: "/run/netns/nowhere" })).rejects.toThrow(
      /^Cannot enter network namespace \/run\/netns\/nowhere: ENOENT/,
    );
    await expect(openSocket("netfilter", { netns: "/etc/hostname" })).rejects.toThrow(
      "Cannot enter network namespace /etc/hostname: EINVAL",
    );
    const socket = await openSocket("netfilter", place());
    await socket.close();
    await socket.close();
    await expect(transact(socket, filled(0, 1))).rejects.toMatchObject({ kind: "unavailable" });
    await expect(dump("netfilter", "read it", elementsOf("none"), place()).next()).rejects.toMatchObject({
      kind: "refused",
      errno: "ENOENT",
      message: "Cannot read it: ENOENT",
    });
  });

  it("never keep a process from ending, by itself or by process.exit", async () => {
    const scratch = mkdtempSync(join(tmpdir(), "tt-netlink-"));
    try {
      const outfile = join(scratch, "listen.mjs");
      await build({
        stdin: { contents: listening, resolveDir: import.meta.dirname, loader: "ts" },
        bundle: true,
        platform: "node",
        format: "esm",
        alias: { koffi: new URL("../../node_modules/koffi/index.js", import.meta.url).pathname },
        external: ["*/koffi/index.js"],
        outfile,
      });
      for (const how of ["return", "exit"]) {
        const { status, stderr } = spawnSync(process.execPath, [outfile, how], {
          timeout: 10_000,
          encoding: "utf8",
        });
        expect([how, status, stderr]).toEqual([how, how === "exit" ? 7 : 0, ""]);
      }
    } finally {
      rmSync(scratch, { recursive: true });
    }
  });
});

const listening = `
  import { openSocket } from "../../src/host/netlink/socket.ts";
  import { watchAddresses } from "../../src/host/netlink/route.ts";
  import { watchTables } from "../../src/host/netlink/tableevents.ts";
  const never = new AbortController().signal;
  const nothing = () => undefined;
  await openSocket("netfilter");
  await watchTables({ changed: nothing, committed: nothing, lost: nothing }, never);
  await watchAddresses({ changed: nothing, lost: nothing }, never);
  if (process.argv[2] === "exit") setTimeout(() => process.exit(7), 20);
`;

/** A request for the elements of a set in the table. */
function elementsOf(set: string): Uint8Array {
  const out = new Writer(64);
  const start = beginNetfilter(out, verbType("getElements"), flag.request | flag.dump, 1, "ip");
  codecs.elements.write(out, { table: "t", set });
  endMessage(out, start);
  return out.bytes();
}

function allTables(): Uint8Array {
  const out = new Writer(64);
  const start = beginNetfilter(out, verbType("getTable"), flag.request | flag.dump, 1, null);
  endMessage(out, start);
  return out.bytes();
}

function add(key: string): Operation {
  return { kind: "addElements", to: { ...at, set: "s" }, elements: [{ key }] };
}

function keys(turn: number, count: number): Element[] {
  return Array.from({ length: count }, (_, i) => ({ key: u32Bytes(((turn % 200) << 24) + i) }));
}

function filled(turn: number, count: number): Operation[] {
  return [
    { kind: "addTable", table: { family: "ip", name: "t", flags: 0 } },
    { kind: "addSet", set: declareSet({ ...at, name: "s", key: ["ipv4_addr"] }) },
    { kind: "addElements", to: { ...at, set: "s" }, elements: keys(turn, count) },
  ];
}

function refilled(turn: number, count: number): Operation[] {
  return [
    { kind: "flushSet", set: { ...at, name: "s" } },
    { kind: "addElements", to: { ...at, set: "s" }, elements: keys(turn, count) },
  ];
}
