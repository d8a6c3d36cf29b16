// NodePorts on loopback: real sockets, kept in step with Routes.
import { connect, createServer } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { endpoint as anEndpoint, ipv4Settings, servicePort } from "../../../../test/support/routed.ts";
import { unusedPort } from "../../../../test/support/sockets.ts";
import type { FamilySettings } from "../../../config/resolve/settings.ts";
import type { Clock } from "../../../model/clock.ts";
import { keyed } from "../../../model/keyed.ts";
import type { Endpoint, ServicePort } from "../../../model/snapshot.ts";
import { type Routes, route } from "../../../routing/routes.ts";
import { LocalhostNodePorts } from "./localhost.ts";

describe("NodePorts on loopback", () => {
  const failures: string[] = [];
  let count = 0;
  let nodePort = 0;
  let closers: (() => unknown)[] = [];
  let listeners: LocalhostNodePorts;
  let routes: Routes | null = null;

  beforeEach(async () => {
    failures.length = 0;
    routes = null;
    nodePort = await unusedPort();
    listeners = new LocalhostNodePorts("ipv4", steadyClock, Math.random, {
      listeners: (_, open) => {
        count = open;
      },
      failed: (_, error) => failures.push(error.message),
      outcome: () => {},
    });
    closers = [() => listeners.close()];
  });

  afterEach(async () => {
    for (const close of closers) await close();
  });

  const update = (ports: readonly ServicePort[], settings: FamilySettings = serving) => {
    routes = route(
      routes,
      {
        ports: keyed(ports.map((each) => [each.key, each] as const)),
        changed: new Set(["shop/web/tcp/", ...ports.map(({ key }) => key)]),
        serviceCIDRs: [],
      },
      settings,
    );
    return listeners.update(routes);
  };

  it("21/23 11/34 opens nothing unless loopback is to be served", async () => {
    await update([service(nodePort, [endpoint(1)])], { ...serving, nftLocalhost: "reject" });
    expect(count).toBe(0);
    expect(await answer(nodePort)).toBe("refused");
  });

  it("21/24 11/36 serves 127.0.0.1 and no other address of loopback", async () => {
    const backend = await backendSaying("a", closers);
    await update([service(nodePort, [endpoint(backend)])]);
    expect(count).toBe(1);
    expect(await answer(nodePort)).toBe("a");
    expect(await answer(nodePort, "127.0.0.2")).toBe("refused");
  });

  it("11/38 21/31 policy Local means the endpoints of this node; without any the port is closed", async () => {
    const local = await backendSaying("local", closers);
    const remote = await backendSaying("remote", closers);
    const web = service(nodePort, [endpoint(local), { ...endpoint(remote), nodeName: "node-b" }]);
    await update([{ ...web, externalPolicy: "local" }]);
    expect(new Set(await Promise.all(Array.from({ length: 12 }, () => answer(nodePort))))).toEqual(
      new Set(["local"]),
    );
    await update([
      { ...web, externalPolicy: "local", endpoints: [{ ...endpoint(remote), nodeName: "node-b" }] },
    ]);
    expect(await answer(nodePort)).toBe("refused");
  });

  it("11/39 21/26 cuts open connections when the last endpoint or the Service goes; other changes only concern new ones", async () => {
    const a = await backendSaying("a", closers, true);
    const b = await backendSaying("b", closers);
    await update([service(nodePort, [endpoint(a)])]);
    const open = connect(nodePort, "127.0.0.1").on("error", () => {});
    closers.push(() => open.destroy());
    await new Promise((resolve) => open.once("data", resolve));
    await update([service(nodePort, [endpoint(b)])]);
    expect(await answer(nodePort)).toBe("b");
    expect(open.destroyed).toBe(false);
    const ended = new Promise((resolve) => open.once("close", resolve));
    await update([]);
    await ended;
    expect(await answer(nodePort)).toBe("refused");
  });

  it("21/27 a port that is taken is reported, and served once it is free", async () => {
    const squatter = createServer();
    await new Promise<void>((resolve) => squatter.listen(nodePort, "127.0.0.1", resolve));
    const backend = await backendSaying("a", closers);
    const other = { ...service(await unusedPort(), [endpoint(backend)]), key: "shop/other/tcp/" };
    const both = [service(nodePort, [endpoint(backend)]), other];
    await update(both);
    expect(failures).toHaveLength(1);
    expect(failures[0]).toContain("another program listens there");
    expect([count, await answer(other.nodePort)]).toEqual([1, "a"]);
    await new Promise((resolve) => squatter.close(resolve));
    await update(both);
    expect([count, await answer(nodePort)]).toEqual([2, "a"]);
  });

  it("12/99 all clients of loopback share one pin", async () => {
    const [a, b] = [await backendSaying("a", closers), await backendSaying("b", closers)];
    await update([{ ...service(nodePort, [endpoint(a), endpoint(b)]), affinity: { seconds: 60 } }]);
    const answers = new Set(await Promise.all(Array.from({ length: 12 }, () => answer(nodePort))));
    expect(answers.size).toBe(1);
  });
});

const serving: FamilySettings = {
  ...ipv4Settings,
  nodePortAddresses: { kind: "some", cidrs: ["127.0.0.0/8"] },
  localhostNodePorts: false,
  nftLocalhost: "serve",
};

function service(nodePort: number, endpoints: readonly Endpoint[]): ServicePort {
  return servicePort("shop/web", { nodePort, endpoints });
}

function endpoint(port: number): Endpoint {
  return anEndpoint(`127.0.0.1:${port}`, { nodeName: "node-a" });
}

function backendSaying(word: string, closers: (() => unknown)[], stays = false): Promise<number> {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    if (stays) socket.write(word);
    else socket.end(word);
  });
  closers.push(() => server.close());
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => resolve((server.address() as { port: number }).port));
  });
}

function answer(port: number, host = "127.0.0.1"): Promise<string> {
  return new Promise((resolve) => {
    let text = "";
    const socket = connect(port, host);
    socket.on("data", (data) => {
      text += String(data);
    });
    socket.on("error", () => resolve("refused"));
    socket.on("end", () => resolve(text));
  });
}

const steadyClock: Clock = { wall: () => Date.now(), steady: () => performance.now(), after: () => () => {} };
