// The driver of userspace mode with real relays on loopback and tables in memory: what it does after trouble.
import { beforeEach, describe, expect, it } from "vitest";
import { MemoryTables } from "../../../../test/support/memory-tables.ts";
import { endpoint, ipv4Settings, routed, servicePort } from "../../../../test/support/routed.ts";
import { answer, closeAfterTest, connected, host, serveTcp } from "../../../../test/support/sockets.ts";
import { HostError } from "../../../host/error.ts";
import { RestoreFailed } from "../../../host/iptables/refusal.ts";
import type { FlowQuery, FlowView } from "../../../host/netlink/conntrack.ts";
import { FdBudget } from "../../../host/relay/fd-budget.ts";
import { listeningPorts } from "../../../host/relay/listening.ts";
import { RelayPorts } from "../../../host/relay/ports.ts";
import type { ServicePort } from "../../../model/snapshot.ts";
import type { Routes } from "../../../routing/routes.ts";
import { UserspaceDriver } from "./driver.ts";
import { Relays } from "./relays.ts";

describe("userspace mode at work", () => {
  const { signal } = new AbortController();
  let tables: MemoryTables;
  let driver: UserspaceDriver;
  let routes: Routes | null;
  let aborted: Set<number>;
  let queries: FlowQuery[];
  let cleaning: () => Promise<{ complete: boolean }>;

  beforeEach(() => {
    tables = new MemoryTables([]);
    routes = null;
    aborted = new Set();
    queries = [];
    cleaning = () => Promise.resolve({ complete: true });
    const relays = new Relays({
      family: "ipv4",
      bind: host,
      ports: new RelayPorts(null, () => 0),
      room: new FdBudget(1000),
      udpIdleMs: 30_000,
      now: () => 0,
      random: () => 0,
      listening: () => new Set([...listeningPorts("ipv4")!].filter((port) => !aborted.has(port))),
    });
    driver = new UserspaceDriver(tables, relays, host, (query) => {
      queries.push(query);
      return cleaning();
    });
    closeAfterTest(() => driver.close());
  });

  const sync = (...ports: readonly ServicePort[]) => {
    routes = routed(ports, ipv4Settings, routes);
    return driver.sync(routes, signal);
  };
  /** The ports that rules lead to. */
  const ledTo = () => {
    const lines = [...tables.tables.tables.values()].flatMap((chains) => [...chains.values()].flat());
    const ports = lines.flatMap((line) => /--to-destination \S+:(\d+)/.exec(line)?.[1] ?? []);
    return [...new Set(ports.map(Number))];
  };
  const web = async () => {
    const backend = await serveTcp((socket) => socket.end("here"));
    return servicePort("shop/web", { endpoints: [endpoint(`${host}:${backend}`)] });
  };
  const dns = servicePort("shop/dns", { protocol: "udp", clusterIP: "172.30.0.9" });
  const refused = new RestoreFailed("refused", "Cannot restore tables: exited with 2", "no", [], []);

  it("closes no relay before the rules that lead there are gone", async () => {
    await sync(await web());
    const [port] = ledTo();
    tables.fail(refused);
    await expect(sync()).rejects.toThrow("exited with 2");
    expect(String(await answer(port!))).toBe("here");
    tables.fail(null);
    await sync();
    expect(ledTo()).toEqual([]);
    await expect(connected(port!)).rejects.toThrow("ECONNREFUSED");
  });

  it("writes the rules of a relay that was opened when they could not be written", async () => {
    const service = await web();
    tables.fail(refused);
    await expect(sync(service)).rejects.toThrow("exited with 2");
    expect(ledTo()).toEqual([]);
    tables.fail(null);
    await sync(service);
    expect(String(await answer(ledTo()[0]!))).toBe("here");
  });

  it("leads to another relay after another process aborted one, and reports it once", async () => {
    const service = await web();
    await sync(service);
    const [before] = ledTo();
    expect(await driver.verify(signal)).toEqual({ differences: 0 });
    aborted.add(before!);
    expect(await driver.verify(signal)).toEqual({ differences: 1 });
    await sync(service);
    expect(ledTo()).toHaveLength(1);
    expect(String(await answer(ledTo()[0]!))).toBe("here");
    aborted.clear();
    expect(await driver.verify(signal)).toEqual({ differences: 0 });
  });

  it.each([
    ["is not seen to its end", () => Promise.resolve({ complete: false })],
    ["cannot be read", () => Promise.reject(new HostError("unavailable", "Cannot read flows: EPERM"))],
  ])("searches for flows to closed relays again where the table of flows %s", async (_, trouble) => {
    await sync(dns);
    const [port] = ledTo();
    cleaning = trouble;
    await sync();
    cleaning = () => Promise.resolve({ complete: true });
    queries.length = 0;
    await sync();
    const flow = { destination: "172.30.0.9", destinationPort: 80, replySourcePort: port } as FlowView;
    expect(queries.map(({ select }) => select(flow))).toEqual([true]);
    await sync();
    expect(queries).toHaveLength(1);
  });
});
