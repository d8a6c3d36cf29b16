// The socket of `turnout status` is handed on, waits its turn, and never keeps a daemon from working.
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { logLines } from "../../test/support/log-lines.ts";
import { manualClock } from "../../test/support/manual-clock.ts";
import { ask } from "./ask.ts";
import type { Status } from "./status.ts";
import { type Answering, StatusSocket } from "./status-socket.ts";

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
});

function socketAt(path: string, node: string): StatusSocket {
  const socket = new StatusSocket(path, answersOf(node), logLines(manualClock()).log);
  opened.push(socket);
  return socket;
}

it("is for root only, answers whatever is asked, and answers anew when it is handed on", async () => {
  const path = join(folder, "new", "sock");
  const socket = socketAt(path, "starting");
  await socket.open();
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(statSync(join(folder, "new")).mode & 0o777).toBe(0o700);
  expect(await ask(path, "/")).toEqual({ node: "starting" });
  expect(await statusOf(path, "//")).toBe(200);
  await socket.handTo(answersOf("working"));
  expect(await ask(path, "/")).toEqual({ node: "working" });
  expect(await ask(path, "/view")).toBeNull();
  socket.close();
  expect(existsSync(path)).toBe(false);
});

it("leaves the socket to another daemon, and takes it when that one has ended", async () => {
  const path = join(folder, "sock");
  const [old, young] = [socketAt(path, "old"), socketAt(path, "young")];
  await old.open();
  await young.open();
  expect(await ask(path, "/")).toEqual({ node: "old" });
  old.close();
  await young.handTo(answersOf("working"));
  expect(await ask(path, "/")).toEqual({ node: "working" });
});

it("goes on where nothing can be served", async () => {
  writeFileSync(join(folder, "file"), "");
  const socket = socketAt(join(folder, "file", "sock"), "starting");
  await socket.open();
  await expect(socket.handTo(answersOf("working"))).resolves.toBeUndefined();
  const nowhere = socketAt("", "starting");
  await expect(nowhere.open()).resolves.toBeUndefined();
});

/** The ways of `ask` are its own. */
function statusOf(socketPath: string, path: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const call = request({ socketPath, path }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    call.on("error", reject).end();
  });
}
