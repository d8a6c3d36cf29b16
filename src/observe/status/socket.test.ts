// The socket of `turnout status` is handed on, waits its turn, and never keeps a daemon from working.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { logLines } from "../../../test/support/log-lines.ts";
import { manualClock } from "../../../test/support/manual-clock.ts";
import type { View } from "../../explain/view.ts";
import { queryDaemon, saveHeap, streamFromDaemon } from "./client.ts";
import { type Answering, StatusSocket } from "./socket.ts";
import type { Status } from "./status.ts";

const statusProcess = join(import.meta.dirname, "../../../test/support/status-process.ts");
let folder: string;
let opened: StatusSocket[];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "turnout-status-"));
  opened = [];
});
afterEach(() => {
  for (const each of opened) each.close();
  rmSync(folder, { recursive: true });
});

const answersOf = (node: string): Answering => ({
  "/": () => ({ node }) as Status,
  "/relays": () => ({}),
  "/view": () => null,
  "/traffic": () => null,
  "/cluster": () => [null],
  "/history": () => [],
});

function socketAt(path: string, node: string): StatusSocket {
  const socket = new StatusSocket(path, answersOf(node), logLines(manualClock()).log);
  opened.push(socket);
  return socket;
}

it("is for root only, answers every path, and uses new answers after they are handed over", async () => {
  const path = join(folder, "new", "sock");
  const socket = socketAt(path, "starting");
  await socket.open();
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(statSync(join(folder, "new")).mode & 0o777).toBe(0o700);
  expect(await queryDaemon(path, "/")).toEqual({ node: "starting" });
  expect(await statusOf(path, "//")).toBe(200);
  await socket.handTo(answersOf("working"));
  expect(await queryDaemon(path, "/")).toEqual({ node: "working" });
  expect(await queryDaemon(path, "/view")).toBeNull();
  socket.close();
  expect(existsSync(path)).toBe(false);
});

it("security/5: a heap snapshot goes to a new file that only its owner can read", async () => {
  const path = join(folder, "sock");
  const file = join(folder, "heap");
  await expect(saveHeap(path, file)).rejects.toThrow("ENOENT");
  expect(existsSync(file)).toBe(false);
  const other = spawn(process.execPath, [statusProcess, path], { stdio: ["pipe", "pipe", "inherit"] });
  try {
    await once(other.stdout, "data");
    await saveHeap(path, file);
    expect(readFileSync(file, "utf8").slice(0, 12)).toBe('{"snapshot":');
    expect(statSync(file).mode & 0o777).toBe(0o600);
    await expect(saveHeap(path, file)).rejects.toThrow("EEXIST");
  } finally {
    other.kill();
  }
});

it("streams the cluster in pieces, and yields to the event loop between any two", async () => {
  const path = join(folder, "sock");
  let turn = 0;
  let counting = setImmediate(function count() {
    turn++;
    counting = setImmediate(count);
  });
  const sent: number[] = [];
  await serveViews(path, function* () {
    for (; sent.length < 40; sent.push(turn))
      yield piece(sent.length, sent.length % 2 === 0 ? 10 : 1_000_000);
  });
  const received: string[] = [];
  for await (const view of streamFromDaemon(path, "/cluster")) received.push((view as View).node!.name);
  clearImmediate(counting);
  expect(received).toEqual(Array.from({ length: 40 }, (_, i) => `node-${i}`));
  expect(new Set(sent).size).toBe(40);
});

it("waits for a client that does not read, and stops when the client is gone", async () => {
  const path = join(folder, "sock");
  let sent = 0;
  let isOver = false;
  await serveViews(path, function* () {
    try {
      for (; sent < 100_000; sent++) yield piece(sent, 100_000);
    } finally {
      isOver = true;
    }
  });
  const silent = connect(path).pause();
  silent.write("GET /cluster HTTP/1.1\r\nHost: turnout\r\n\r\n");
  await expect.poll(() => sent).toBeGreaterThan(0);
  // The answers of the same server to others show that it had the time to send more.
  let before = 0;
  while (sent > before) {
    before = sent;
    for (let i = 0; i < 10; i++) await queryDaemon(path, "/");
  }
  expect([sent < 100_000, isOver]).toEqual([true, false]);
  silent.destroy();
  await expect.poll(() => isOver).toBe(true);
});

it("a tale that breaks off is no tale", async () => {
  const path = join(folder, "sock");
  const socket = await serveViews(path, function* () {
    for (let i = 0; ; i++) yield piece(i, 100_000);
  });
  const listening = async () => {
    for await (const _ of streamFromDaemon(path, "/cluster")) socket.close();
  };
  await expect(listening()).rejects.toThrow(/aborted/);
});

async function serveViews(path: string, views: () => Iterable<View>): Promise<StatusSocket> {
  const answers = { ...answersOf("working"), "/cluster": views };
  const socket = new StatusSocket(path, answers, logLines(manualClock()).log);
  opened.push(socket);
  await socket.open();
  return socket;
}

function piece(number: number, size: number): View {
  const none = { ports: [], serviceCIDRs: [] };
  const node = { zone: "z".repeat(size), addresses: [], podCIDRs: [], eligibleForLoadBalancers: true };
  return { ipv4: none, ipv6: none, node: { name: `node-${number}`, ...node }, problems: [] };
}

it("leaves the socket to another daemon, and takes it when that one has ended", async () => {
  const path = join(folder, "sock");
  const [old, young] = [socketAt(path, "old"), socketAt(path, "young")];
  await old.open();
  await young.open();
  expect(await queryDaemon(path, "/")).toEqual({ node: "old" });
  old.close();
  await young.handTo(answersOf("working"));
  expect(await queryDaemon(path, "/")).toEqual({ node: "working" });
});

it("continues where nothing can be served, and logs that once", async () => {
  writeFileSync(join(folder, "file"), "");
  const path = join(folder, "file", "sock");
  const { log, lines } = logLines(manualClock());
  const socket = new StatusSocket(path, answersOf("starting"), log);
  await socket.open();
  await expect(socket.handTo(answersOf("working"))).resolves.toBeUndefined();
  expect(lines()).toEqual([
    expect.stringMatching(
      /"Cannot serve the status socket.*" socket=".*\/file\/sock" reason="E.*" hint=".*"/,
    ),
  ]);
  const nowhere = socketAt("", "starting");
  await expect(nowhere.open()).resolves.toBeUndefined();
});

/** Without the checks of the client. */
function statusOf(socketPath: string, path: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const call = request({ socketPath, path }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    call.on("error", reject).end();
  });
}
