// Servers and proxies that send invalid responses: each is a failure with a message, within a bounded time.
import { type AddressInfo, createServer, type Socket } from "node:net";
import { gzipSync } from "node:zlib";
import { afterEach, expect, it, onTestFinished } from "vitest";
import { type ManualClock, manualClock } from "../../../test/support/manual-clock.ts";
import { realWorld } from "../world.ts";
import { type ApiClient, apiClient } from "./client.ts";
import { resolveConnection } from "./connection.ts";
import { unlimited } from "./throttle.ts";

let clock: ManualClock;
let client: ApiClient;
let sockets: Set<Socket>;

afterEach(() => client.close());

/** A server that does this when it receives a request, and its port. */
async function behaving(behave: (socket: Socket) => void): Promise<number> {
  const open = new Set<Socket>();
  sockets = open;
  const server = createServer((socket) => {
    open.add(socket);
    socket.on("error", () => {}).on("close", () => open.delete(socket));
    socket.once("data", () => behave(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    for (const socket of open) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

async function clientOf(
  master: string,
  env: Record<string, string> = {},
  largest?: number,
): Promise<ApiClient> {
  clock = manualClock();
  const world = { ...realWorld(clock), env };
  client = apiClient(await resolveConnection({ master }, world), world, unlimited, "x", { largest });
  return client;
}

const request = { path: "/api/v1/services" };
const { signal } = new AbortController();
const head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";

/** Why the request fails, before any time has passed. */
async function reason(behave: (socket: Socket) => void, largest?: number): Promise<string> {
  const client = await clientOf(`http://127.0.0.1:${await behaving(behave)}`, {}, largest);
  return client.json(request, signal).then(
    (value) => `answered ${JSON.stringify(value)}`,
    ({ kind, message }) => `${kind}: ${message.replace(/127\.0\.0\.1:\d+/, "server")}`,
  );
}

it.each([
  [
    "101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
    "lost: Cannot reach server: it requires another protocol",
  ],
  [`200 OK\r\nX: ${"y".repeat(20_000)}\r\n\r\n`, "lost: Cannot reach server: Parse Error: Header overflow"],
  ["302 Found\r\nLocation: http://203.0.113.9/\r\nContent-Length: 0\r\n\r\n", "refused: HTTP 302"],
  ["204 No Content\r\n\r\n", 'garbled: Cannot read the response: it is "", not JSON'],
])("an answer %.20s… is a failure", async (answer, failure) => {
  expect(await reason((socket) => socket.write(`HTTP/1.1 ${answer}`))).toBe(failure);
});

it.each([
  ["speaks something else", "SSH-2.0-OpenSSH_9\r\n", /^lost: Cannot reach server: Parse Error/],
  ["ends within the head", "HTTP/1.1 200 OK\r\nContent-Ty", /^lost: Cannot reach server: socket hang up/],
  ["ends within the body", `${head}Content-Length: 9\r\n\r\n{"a"`, /^lost: Cannot reach server: aborted/],
  ["garbles its chunks", `${head}Transfer-Encoding: chunked\r\n\r\nzz\r\n{}`, /^lost: Cannot reach server/],
  [
    "zips badly",
    `${head}Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}`,
    /^lost: .*incorrect header check/,
  ],
  ["sends nothing", `${head}Content-Length: 0\r\n\r\n`, /^garbled: Cannot read the response: Unexpected end/],
  ["is very old", 'HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n{"a":1}', /^answered \{"a":1\}$/],
])("a server that %s is reported immediately", async (_, bytes, outcome) => {
  expect(await reason((socket) => socket.end(bytes))).toMatch(outcome);
});

it("a response that decompresses to more than the limit is refused before it is decompressed", async () => {
  const bomb = gzipSync(Buffer.alloc(1 << 22, " "));
  const zipped = `${head}Content-Encoding: gzip\r\nContent-Length: ${bomb.length}\r\n\r\n`;
  const answer = await reason((socket) => socket.write(Buffer.concat([Buffer.from(zipped), bomb])), 1 << 20);
  expect(answer).toBe("garbled: Cannot read the response: it is larger than 1048576 bytes");
});

it("a refusal also counts when its body arrives too slowly", async () => {
  const drips = (socket: Socket) => {
    socket.write("HTTP/1.1 404 Not Found\r\n\r\n");
    const timer = setInterval(() => socket.write("x"), 5);
    socket.on("close", () => clearInterval(timer));
  };
  const refused = reason(drips);
  const dripping = setInterval(() => clock.advance(1000), 5);
  onTestFinished(() => clearInterval(dripping));
  expect(await refused).toBe("refused: HTTP 404");
});

it.each(["http", "socks5"])(
  "a %s proxy that never answers holds up neither request nor end, and no connection stays",
  async (scheme) => {
    const port = await behaving(() => {});
    const silent = await clientOf("http://192.0.2.1", { HTTP_PROXY: `${scheme}://127.0.0.1:${port}` });
    const late = silent.json({ ...request, headMs: 5000 }, signal).catch((error: Error) => error.message);
    await expect.poll(() => sockets.size).toBe(1);
    clock.advance(5000);
    expect(await late).toBe("Cannot reach 192.0.2.1: no response within 5 s");
    const life = new AbortController();
    const cut = silent.stream(request, life.signal).catch((error: Error) => error.message);
    await expect.poll(() => sockets.size).toBe(2);
    life.abort(new Error("the end"));
    expect(await cut).toBe("the end");
    clock.advance(30_000);
    await expect.poll(() => sockets.size).toBe(0);
  },
);
