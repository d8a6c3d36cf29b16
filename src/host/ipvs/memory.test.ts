// The host in memory refuses what a kernel refuses; test/uml compares it with one.
import { describe, expect, it } from "vitest";
import type { Operation, ServerId } from "../../plan/ipvs/types.ts";
import { MemoryIpvsHost } from "./memory.ts";

describe("a host in memory", () => {
  const web: ServerId = { address: "172.30.0.1", port: 80, protocol: "tcp" };
  const add: Operation = {
    kind: "add server",
    server: { ...web, scheduler: "rr", flags: 0, timeoutSeconds: 0 },
  };
  const destination = { address: "10.0.0.1", port: 8080, weight: 1 };

  it("applies what it can and names what it cannot", async () => {
    const host = new MemoryIpvsHost("ipv4");
    const { failures } = await host.apply([
      { kind: "add destination", server: web, destination },
      add,
      { kind: "add destination", server: web, destination },
      { kind: "add address", address: "172.30.0.1" },
      { ...add, server: { ...add.server, port: 81, scheduler: "nope" } },
    ]);
    expect(failures.map(({ operation, errno }) => [operation, errno])).toEqual([
      [0, "ESRCH"],
      [3, "ENODEV"],
      [4, "ENOENT"],
    ]);
    const { servers } = await host.read();
    expect([...servers.get("172.30.0.1:80/TCP")!.destinations.keys()]).toEqual(["10.0.0.1:8080"]);
  });

  it("keeps the connections of a real server that is set", async () => {
    const host = new MemoryIpvsHost("ipv4");
    await host.apply([add, { kind: "add destination", server: web, destination }]);
    host.count(web, "10.0.0.1:8080", 3, 1);
    await host.apply([{ kind: "set destination", server: web, destination: { ...destination, weight: 0 } }]);
    const held = (await host.readDestinations([web, { ...web, port: 81 }])).get("172.30.0.1:80/TCP");
    expect(held?.get("10.0.0.1:8080")).toEqual({ ...destination, weight: 0, active: 3, inactive: 1 });
  });

  it("fails every request when it is broken", async () => {
    const host = new MemoryIpvsHost("ipv4");
    host.breakDown("no IPVS");
    await expect(host.read()).rejects.toThrow("no IPVS");
    host.breakDown(null);
    host.pin("KUBE-A");
    expect((await host.apply([{ kind: "destroy set", set: "KUBE-A" }])).failures).toHaveLength(1);
  });
});
