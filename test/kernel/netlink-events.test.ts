// Multicast events: which process changed nf_tables, changes of addresses, and a process that still ends.
import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Operation } from "../../src/host/netlink/batch.ts";
import { u32Bytes } from "../../src/host/netlink/bytes.ts";
import type { NfFamily } from "../../src/host/netlink/netfilter.ts";
import { declareSet } from "../../src/host/netlink/settypes.ts";
import { openSocket } from "../../src/host/netlink/socket.ts";
import { type TableChange, watchTables } from "../../src/host/netlink/tableevents.ts";
import { transact } from "../../src/host/netlink/transaction.ts";
import { createNamespace, isRoot, type Namespace } from "./netns.ts";

describe.runIf(isRoot)("netlink events", () => {
  let here: Namespace;
  let stop: AbortController;
  beforeEach(() => {
    here = createNamespace();
    stop = new AbortController();
  });
  afterEach(() => {
    stop.abort();
    here.remove();
  });

  it("distinguishes our own transactions, of any socket, from foreign ones", async () => {
    const sockets = [
      await openSocket("netfilter", { netns: here.path }),
      await openSocket("netfilter", { netns: here.path }),
    ];
    const seen = await follow(sockets.map(({ portId }) => portId));
    for (const socket of sockets) await transact(socket, load(20_000));
    here.run("nft", "add chain ip t foreign; flush set ip t s; add rule ip t foreign drop");
    await waitFor(() => seen.committed.length > 0);
    expect(seen.committed).toMatchObject([{ process: "nft" }]);
    expect(seen.changed.map(({ verb, table, name }) => `${verb} ${table} ${name}`)).toEqual(
      expect.arrayContaining(["newChain t foreign", "newRule t foreign", "delElements t s"]),
    );
    expect(seen.changed.filter(({ portId }) => sockets.some((own) => own.portId === portId))).toEqual([]);
    expect(seen.lost).toBe(0);
    for (const socket of sockets) await socket.close();
  });

  it("reports changes of one family alone if asked to, and all transactions", async () => {
    const seen = await follow([], "ip6");
    here.run("nft", "add table ip t; add chain ip t c; add table ip6 t");
    here.run("nft", "add chain ip t d");
    await waitFor(() => seen.committed.length === 2);
    expect(seen.changed.map(({ verb, family, name }) => `${verb} ${family} ${name}`)).toEqual([
      "newTable ip6 t",
    ]);
  });

  it("reports lost events", async () => {
    const seen = await follow();
    const addresses = Array.from({ length: 150_000 }, (_, i) => `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`);
    // We wait for nft here without reading events, so that more of them gather than the socket can hold.
    here.feed(
      `table ip t { set s { type ipv4_addr; elements = { ${addresses.join(", ")} }; }; }`,
      "nft",
      "-f",
      "-",
    );
    await waitFor(() => seen.lost > 0);
  });

  // Callbacks of koffi do not run what waits for promises: an idle daemon noticed changes with its next timer, seconds later.
  it("wakes code that waits for an event, in a process that has nothing else to do", async () => {
    const program = join(import.meta.dirname, "idle-watch.ts");
    const child = spawn(process.execPath, [program, here.path], { stdio: ["ignore", "pipe", "inherit"] });
    const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
    expect((await lines.next()).value).toBe("watching");
    here.run("nft", "add table ip t");
    expect((await lines.next()).value).toBe("event");
  });

  it("is silent after its end", async () => {
    const seen = await follow();
    stop.abort();
    here.run("nft", "add table ip t");
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(seen.committed).toEqual([]);
  });

  async function follow(own: readonly number[] = [], family?: NfFamily) {
    const seen = { changed: [] as TableChange[], committed: [] as object[], lost: 0 };
    const listener = {
      changed: (change: TableChange) => void seen.changed.push(change),
      committed: (generation: object) => void seen.committed.push(generation),
      lost: () => void seen.lost++,
    };
    await watchTables(listener, stop.signal, { netns: here.path, own, ...(family && { family }) });
    return seen;
  }
});

function load(count: number): Operation[] {
  const elements = Array.from({ length: count }, (_, i) => ({ key: u32Bytes(i) }));
  return [
    { kind: "addTable", table: { family: "ip", name: "t", flags: 0 } },
    { kind: "addSet", set: declareSet({ family: "ip", table: "t", name: "s", key: ["ipv4_addr"] }) },
    { kind: "addElements", to: { family: "ip", table: "t", set: "s" }, elements },
  ];
}

async function waitFor(condition: () => boolean): Promise<void> {
  const deadline = Date.now() + 10_000;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error("waited ten seconds in vain");
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
