// Ports reserved for Frontends, and errors that do not release them.
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { readdirSync } from "node:fs";
import type { Server } from "node:net";
import { describe, expect, it } from "vitest";
import { closeAfterTest, connected, host, unusedPort } from "../../../test/support/sockets.ts";
import { reservePort } from "./port-reservation.ts";

describe("a reserved TCP port", () => {
  it("stays reserved when a client cannot be accepted, and until it is released", async () => {
    const port = await unusedPort();
    const [server, place] = await listeningWhile(() => reservePort("tcp", host, port));
    // As when there are no descriptors left: an error without a listener would end the process.
    for (const code of ["EMFILE", "ENFILE"])
      server.emit("error", Object.assign(new Error("accept"), { code }));
    expect(server.listening).toBe(true);
    await expect(reservePort("tcp", host, port)).rejects.toThrow("another program listens there");
    expect([place.isLost(new Set([port])), place.isLost(new Set())]).toEqual([false, true]);
    await place.release();
    await (await reservePort("tcp", host, port)).release();
  });

  it("closes connections of clients", async () => {
    const port = await unusedPort();
    const place = await reservePort("tcp", host, port);
    closeAfterTest(() => place.release());
    const client = await connected(port);
    await new Promise((resolve) => client.once("close", resolve).resume());
    expect(client.destroyed).toBe(true);
  });
});

const descriptors = () => readdirSync("/proc/self/fd").length;

describe("a reserved UDP port", () => {
  it("is reserved until it is released, independent of TCP", async () => {
    const port = await unusedPort();
    const tcp = await reservePort("tcp", host, port);
    closeAfterTest(() => tcp.release());
    const place = await reservePort("udp", host, port);
    expect(place.isLost(new Set())).toBe(false);
    const before = descriptors();
    for (let i = 0; i < 5; i++)
      await expect(reservePort("udp", host, port)).rejects.toThrow(
        `Cannot listen on UDP ${host} port ${port}`,
      );
    await expect.poll(descriptors).toBe(before);
    await place.release();
    await (await reservePort("udp", host, port)).release();
  });
});

/** What is made, and the server that began to listen meanwhile. */
async function listeningWhile<T>(make: () => Promise<T>): Promise<[Server, T]> {
  const servers: Server[] = [];
  const note = (message: unknown) => servers.push((message as { server: Server }).server);
  subscribe("tracing:net.server.listen:asyncStart", note);
  try {
    const made = await make();
    return [servers[0]!, made];
  } finally {
    unsubscribe("tracing:net.server.listen:asyncStart", note);
  }
}
