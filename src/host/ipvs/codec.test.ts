// Servers in the Plan's types and as messages, in the forms that kernels send.
import { describe, expect, it } from "vitest";
import { heldDestinationOf, serverOf, serviceOf } from "./codec.ts";

describe("servers as messages", () => {
  const server = {
    address: "172.30.0.1",
    port: 80,
    protocol: "tcp",
    scheduler: "rr",
    flags: 0x1,
    timeoutSeconds: 60,
  } as const;

  it("20/46 tolerates IPv4 addresses of 16 bytes, and takes out the flag that the kernel adds", () => {
    const message = serviceOf(server);
    const listed = {
      ...message,
      address: message.address!.padEnd(16, "\0"),
      flags: { flags: 0x3, mask: 0xffffffff },
    };
    expect(serverOf(listed)).toEqual(server);
    const destination = { address: "\x0a\0\0\x01".padEnd(16, "\0"), port: 8080, weight: 1 };
    expect(heldDestinationOf(destination, "ipv4")).toMatchObject({ address: "10.0.0.1", active: 0 });
  });

  it("20/12 sends the netmask of one client and a full mask of flags", () => {
    expect(serviceOf(server)).toMatchObject({ netmask: 0xffffffff, flags: { flags: 1, mask: 0xffffffff } });
    expect(serviceOf({ ...server, address: "fd00::1" })).toMatchObject({ family: 10, netmask: 128 });
  });

  it("leaves out servers that answer to marks, and protocols that no Service has", () => {
    expect(serverOf({ family: 2, mark: 7, scheduler: "rr" })).toBeNull();
    expect(serverOf({ ...serviceOf(server), protocol: 50 })).toBeNull();
  });
});
