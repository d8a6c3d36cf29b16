// The kernel's list of listening sockets, with connections after them.
import { createServer } from "node:net";
import { describe, expect, it } from "vitest";
import { connected, serveTcp } from "../../../test/support/sockets.ts";
import { listeningPorts } from "./listening.ts";

describe("listening ports", () => {
  it("are those of servers, and neither those of connections nor of servers that are gone", async () => {
    const port = await serveTcp(() => {});
    const { localPort } = await connected(port);
    const gone = createServer();
    await new Promise<void>((resolve) => gone.listen(0, "127.0.0.1", resolve));
    const { port: gonePort } = gone.address() as { port: number };
    expect(listeningPorts("ipv4")).toContain(gonePort);
    await new Promise((resolve) => gone.close(resolve));
    const ports = listeningPorts("ipv4")!;
    expect([port, localPort!, gonePort].map((each) => ports.has(each))).toEqual([true, false, false]);
  });

  it("are many, in several reads", async () => {
    const opened = await Promise.all(Array.from({ length: 200 }, () => serveTcp(() => {})));
    const ports = listeningPorts("ipv4")!;
    expect(opened.filter((port) => !ports.has(port))).toEqual([]);
  });
});
