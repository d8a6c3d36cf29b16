// The health servers on real sockets: paths, codes, headers, families, and clients that misbehave.

import { get, request } from "node:http";
import { connect, createServer, type Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { manualClock } from "../../../test/support/manual-clock.ts";
import { unusedPort } from "../../../test/support/sockets.ts";
import { systemClock } from "../clock.ts";
import { silentLog } from "../log/log.ts";
import { counterVector } from "../metrics/instruments.ts";
import { openHealth } from "../proxy-health.ts";
import { healthPages } from "./health-server.ts";
import { type HttpServer, listen, type Respond } from "./http.ts";
import { keepServing } from "./keep-serving.ts";
import { healthCheckAddresses, openServiceHealth, type ServiceHealth } from "./service-health.ts";

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

type Got = { status: number; headers: Record<string, unknown>; body: string };

function sendRequest(host: string, port: number, path: string, method = "GET"): Promise<Got> {
  return new Promise((resolve, reject) => {
    request({ host, port, path, method, agent: false }, (response) => {
      let body = "";
      response.on("data", (chunk) => (body += chunk));
      response.on("end", () => resolve({ status: response.statusCode!, headers: response.headers, body }));
    })
      .on("error", reject)
      .end();
  });
}

async function healthServer(host = "127.0.0.1", connections = 512) {
  const health = openHealth({ timeoutMs: () => 60_000, answers: "honest", silentMs: 900_000 }, systemClock);
  health.setNode({ eligibleForLoadBalancers: true });
  const healthz = counterVector(["code"]);
  const livez = counterVector(["code"]);
  let displaced = 0;
  const server = await listen(
    { host, port: 0, families: "both" },
    healthPages(health, { healthz: healthz.instrument, livez: livez.instrument }, systemClock),
    { connections, onDisplaced: () => displaced++ },
  );
  closers.push(server.close);
  return { health, server, port: server.port, counts: { healthz, livez }, displaced: () => displaced };
}

async function occupy(port: number, host = "127.0.0.1") {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen({ port, host }, resolve));
  const address = server.address() as { port: number };
  return { port: address.port, free: () => new Promise((resolve) => server.close(resolve)) };
}

describe("a client that reads nothing of its answer", () => {
  it("security/15: is cut off, and one that waits for a slow page is not", async () => {
    let release = () => {};
    const slow = new Promise<void>((resolve) => {
      release = resolve;
    });
    const respond: Respond = async ({ url }) => {
      if (url === "/slow") await slow;
      return { status: 200, headers: {}, body: url === "/slow" ? "done" : "x".repeat(32 << 20) };
    };
    const limits = { connections: 8, onDisplaced() {}, stalledMs: 200 };
    const server = await listen({ host: "127.0.0.1", port: 0, families: "both" }, respond, limits);
    closers.push(server.close);
    const patient = sendRequest("127.0.0.1", server.port, "/slow");
    const silent = connect(server.port, "127.0.0.1").pause();
    const cut = new Promise((resolve) => silent.once("close", resolve));
    silent.on("error", () => {});
    silent.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    await expect.poll(() => server.open()).toBe(2);
    // A paused socket does not see the end before it reads again; the server does not wait for that.
    await expect.poll(() => server.open()).toBe(1);
    silent.resume();
    await cut;
    release();
    expect((await patient).body).toBe("done");
  });
});

describe("the proxy health server", () => {
  it("03/11 answers /healthz and /livez exactly, with any method; anything else is 404", async () => {
    const { port } = await healthServer();
    const { status, headers } = await sendRequest("127.0.0.1", port, "/healthz?x=1");
    expect(status).toBe(200);
    expect(headers).toMatchObject({
      "content-type": "application/json",
      "x-content-type-options": "nosniff",
    });
    expect((await sendRequest("127.0.0.1", port, "/livez", "POST")).status).toBe(200);
    expect((await sendRequest("127.0.0.1", port, "/healthz", "HEAD")).body).toBe("");
    for (const path of ["/healthz/", "/foo", "/", "/healthz/ping"]) {
      const { status, headers, body } = await sendRequest("127.0.0.1", port, path);
      expect([path, status, body]).toEqual([path, 404, "404 page not found\n"]);
      expect(headers["content-type"]).toBe("text/plain; charset=utf-8");
    }
  });

  it("03/12 counts each answer by its code", async () => {
    const { port, health, counts } = await healthServer();
    for (let i = 0; i < 3; i++) await sendRequest("127.0.0.1", port, "/healthz");
    health.setNode(null);
    await sendRequest("127.0.0.1", port, "/healthz");
    await sendRequest("127.0.0.1", port, "/livez");
    await sendRequest("127.0.0.1", port, "/other");
    const shown = (vector: typeof counts.healthz) =>
      vector.samples().map(({ labels, value }) => [labels[0], value]);
    expect(shown(counts.healthz)).toEqual([
      ["200", 3],
      ["503", 1],
    ]);
    expect(shown(counts.livez)).toEqual([["200", 1]]);
  });

  it.each(["0.0.0.0", "::"])(
    "03/14 02/36 on the wildcard %s clients of both families are served",
    async (host) => {
      const { port } = await healthServer(host);
      expect((await sendRequest("127.0.0.1", port, "/healthz")).status).toBe(200);
      expect((await sendRequest("::1", port, "/healthz")).status).toBe(200);
    },
  );

  it("clients that never finish their request are displaced by newcomers", async () => {
    const { port, displaced } = await healthServer("127.0.0.1", 20);
    const slow: Socket[] = [];
    let closed = 0;
    for (let i = 0; i < 50; i++) {
      const socket = connect(port, "127.0.0.1").on("error", () => {});
      socket.on("close", () => closed++);
      slow.push(socket);
      socket.write("GET /healthz HTTP/1.1\r\nHost: x\r\n");
    }
    closers.push(() => slow.map((socket) => socket.destroy()));
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect((await sendRequest("127.0.0.1", port, "/healthz")).status).toBe(200);
    expect(displaced()).toBeGreaterThanOrEqual(30);
    await until(() => closed >= 30);
  });

  it("refuses headers that are too large and survives nonsense", async () => {
    const { port } = await healthServer();
    const { status } = await new Promise<Got>((resolve) =>
      get(
        { port, host: "127.0.0.1", path: "/healthz", headers: { x: "y".repeat(20_000) }, agent: false },
        (response) => {
          response.resume();
          resolve({ status: response.statusCode!, headers: {}, body: "" });
        },
      ),
    );
    expect(status).toBe(431);
    const closed = new Promise((resolve) => {
      const socket = connect(port, "127.0.0.1", () => socket.write("\u0000\u0001 nonsense\r\n\r\n"));
      socket
        .on("close", resolve)
        .on("error", () => {})
        .resume();
    });
    await closed;
    expect((await sendRequest("127.0.0.1", port, "/healthz")).status).toBe(200);
  });
});

describe("a port that is taken", () => {
  it("02/35 is tried again every five seconds until it is free", async () => {
    const clock = manualClock();
    const blocker = await occupy(0);
    const open = () =>
      listen(
        { host: "127.0.0.1", port: blocker.port, families: "both" },
        () => ({ status: 200, headers: {}, body: "" }),
        {
          connections: 10,
          onDisplaced() {},
        },
      );
    let attempts = 0;
    const counted = () => {
      attempts++;
      return open();
    };
    const kept = keepServing(
      { name: "healthz", address: "x", open: counted, onHardFail: null },
      clock,
      silentLog,
    );
    closers.push(kept.close);
    await until(() => clock.pending() === 1);
    expect(kept.current()).toBeNull();
    await blocker.free();
    clock.advance(4_999);
    expect(attempts).toBe(1);
    clock.advance(1);
    await until(() => kept.current() !== null);
    expect((await sendRequest("127.0.0.1", blocker.port, "/")).status).toBe(200);
  });

  it("02/35 with hard-fail is reported once and not tried again", async () => {
    const clock = manualClock();
    const failures: Error[] = [];
    const open = () => Promise.reject<HttpServer>(new Error("in use"));
    const kept = keepServing(
      { name: "metrics", address: "x", open, onHardFail: (error) => failures.push(error) },
      clock,
      silentLog,
    );
    await until(() => failures.length === 1);
    expect(clock.pending()).toBe(0);
    await kept.close();
  });
});

describe("health check node ports", () => {
  type Options = { addresses?: readonly string[]; healthy?: () => boolean; family?: "ipv4" | "ipv6" };
  function servers({ addresses = ["127.0.0.1"], healthy = () => true, family = "ipv4" }: Options = {}) {
    const failures: string[] = [];
    const service: ServiceHealth = openServiceHealth({
      family,
      addresses: () => addresses,
      healthy,
      onFailure: (name, port) => failures.push(`${name} ${port}`),
      onDisplaced() {},
    });
    closers.push(service.close);
    return { service, failures };
  }

  it("03/15 no local endpoint: 503, weight 0", async () => {
    const { service } = servers();
    const port = await unusedPort();
    await service.update([{ service: "shop/web", port, localEndpoints: 0 }]);
    const { status, headers, body } = await sendRequest("127.0.0.1", port, "/");
    expect([status, headers["x-load-balancing-endpoint-weight"]]).toEqual([503, "0"]);
    expect(headers).toMatchObject({
      "content-type": "application/json",
      "x-content-type-options": "nosniff",
    });
    expect(JSON.parse(body).localEndpoints).toBe(0);
  });

  it("03/16 03/24 the weight is the count; an unhealthy proxy fails all; any path answers the same", async () => {
    let healthy = true;
    const { service } = servers({ healthy: () => healthy });
    const port = await unusedPort();
    await service.update([{ service: "shop/web", port, localEndpoints: 18 }]);
    const { status, headers, body } = await sendRequest("127.0.0.1", port, "/x/y", "DELETE");
    expect([status, headers["x-load-balancing-endpoint-weight"]]).toEqual([200, "18"]);
    expect((await sendRequest("127.0.0.1", port, "/")).body).toBe(body);
    healthy = false;
    const sick = await sendRequest("127.0.0.1", port, "/");
    expect([sick.status, sick.headers["x-load-balancing-endpoint-weight"]]).toEqual([503, "18"]);
    expect(JSON.parse(sick.body).serviceProxyHealthy).toBe(false);
  });

  it("03/19 the node's eligibility does not matter", async () => {
    const health = openHealth({ timeoutMs: () => 60_000, answers: "honest", silentMs: 900_000 }, systemClock);
    health.setNode(null);
    const { service } = servers({ healthy: () => health.verdict().healthy });
    const port = await unusedPort();
    await service.update([{ service: "shop/web", port, localEndpoints: 1 }]);
    expect((await sendRequest("127.0.0.1", port, "/")).status).toBe(200);
  });

  it("03/20 a changed port closes the old server and opens the new one; an unchanged one is left alone", async () => {
    const { service } = servers();
    const [first, second, other] = [await unusedPort(), await unusedPort(), await unusedPort()];
    await service.update([
      { service: "shop/web", port: first, localEndpoints: 2 },
      { service: "shop/api", port: other, localEndpoints: 1 },
    ]);
    const kept = connect(other, "127.0.0.1");
    let cut = false;
    kept.on("close", () => (cut = true)).on("error", () => {});
    closers.push(() => kept.destroy());
    await new Promise((resolve) => kept.once("connect", resolve));
    await service.update([
      { service: "shop/web", port: second, localEndpoints: 3 },
      { service: "shop/api", port: other, localEndpoints: 1 },
    ]);
    await expect(sendRequest("127.0.0.1", first, "/")).rejects.toThrow(/ECONNREFUSED/);
    expect((await sendRequest("127.0.0.1", second, "/")).headers["x-load-balancing-endpoint-weight"]).toBe(
      "3",
    );
    expect(cut).toBe(false);
    await service.update([]);
    await expect(sendRequest("127.0.0.1", second, "/")).rejects.toThrow(/ECONNREFUSED/);
  });

  it("move when the addresses that NodePorts answer on change", async () => {
    const addresses = ["127.0.0.1"];
    const { service } = servers({ addresses });
    const port = await unusedPort();
    const wanted = [{ service: "shop/web", port, localEndpoints: 1 }];
    await service.update(wanted);
    addresses[0] = "127.0.0.2";
    await service.update(wanted);
    expect((await sendRequest("127.0.0.2", port, "/")).status).toBe(200);
    await expect(sendRequest("127.0.0.1", port, "/")).rejects.toThrow(/ECONNREFUSED/);
  });

  it("03/21 an occupied port is reported at every update and opened once it is free; others are served", async () => {
    const { service, failures } = servers();
    const blocker = await occupy(0);
    const port = await unusedPort();
    const wanted = [
      { service: "shop/a", port: blocker.port, localEndpoints: 1 },
      { service: "shop/b", port, localEndpoints: 1 },
    ];
    await service.update(wanted);
    await service.update(wanted);
    expect(failures).toEqual([`shop/a ${blocker.port}`, `shop/a ${blocker.port}`]);
    expect((await sendRequest("127.0.0.1", port, "/")).status).toBe(200);
    await blocker.free();
    await service.update(wanted);
    expect((await sendRequest("127.0.0.1", blocker.port, "/")).status).toBe(200);
  });

  it("03/21 listeners opened before the failure are closed again", async () => {
    const blocker = await occupy(0, "127.0.0.2");
    closers.push(blocker.free);
    const { service, failures } = servers({ addresses: ["127.0.0.1", "127.0.0.2"] });
    await service.update([{ service: "shop/a", port: blocker.port, localEndpoints: 1 }]);
    expect(failures).toHaveLength(1);
    await expect(sendRequest("127.0.0.1", blocker.port, "/")).rejects.toThrow(/ECONNREFUSED/);
  });

  it("03/14 the socket of one family does not serve the other", async () => {
    const port = await unusedPort();
    const { service: v4 } = servers({ addresses: healthCheckAddresses("ipv4", { kind: "all" }, []) });
    await v4.update([{ service: "shop/a", port, localEndpoints: 1 }]);
    await expect(sendRequest("::1", port, "/")).rejects.toThrow(/ECONNREFUSED/);
    const { service: v6, failures } = servers({
      addresses: healthCheckAddresses("ipv6", { kind: "all" }, []),
      family: "ipv6",
    });
    await v6.update([{ service: "shop/a", port, localEndpoints: 2 }]);
    expect(failures).toEqual([]);
    expect((await sendRequest("127.0.0.1", port, "/")).headers["x-load-balancing-endpoint-weight"]).toBe("1");
    expect((await sendRequest("::1", port, "/")).headers["x-load-balancing-endpoint-weight"]).toBe("2");
  });

  it("03/22 nodePortAddresses choose among this node's addresses", () => {
    const local = ["127.0.0.1", "192.168.0.2", "192.168.1.2"];
    const some = (...cidrs: string[]) => healthCheckAddresses("ipv4", { kind: "some", cidrs }, local);
    expect(some("127.0.0.0/8")).toEqual(["127.0.0.1"]);
    expect(some("192.168.0.0/16", "192.168.0.0/24")).toEqual(["192.168.0.2", "192.168.1.2"]);
    expect(healthCheckAddresses("ipv4", { kind: "all" }, local)).toEqual(["0.0.0.0"]);
    expect(healthCheckAddresses("ipv6", { kind: "all" }, local)).toEqual(["::"]);
  });

  it("03/23 when no address matches there is no listener and no failure", async () => {
    const addresses = healthCheckAddresses("ipv4", { kind: "some", cidrs: ["203.0.113.0/24"] }, [
      "127.0.0.1",
    ]);
    const { service, failures } = servers({ addresses });
    const port = await unusedPort();
    await service.update([{ service: "shop/a", port, localEndpoints: 1 }]);
    expect(failures).toEqual([]);
    await expect(sendRequest("127.0.0.1", port, "/")).rejects.toThrow(/ECONNREFUSED/);
  });
});

async function until(condition: () => boolean): Promise<void> {
  await expect.poll(condition).toBe(true);
}
