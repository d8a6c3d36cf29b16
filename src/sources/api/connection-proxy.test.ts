// Connections to the API through proxies.
import { createServer as createHttp } from "node:http";
import { type AddressInfo, connect, createServer as createTcp, type Server } from "node:net";
import { describe, expect, it } from "vitest";
import {
  base64,
  kubeconfig,
  list,
  listServices,
  open,
  serve,
  server,
  tls,
  trust,
  useConnections,
} from "../../../test/support/connections.ts";
import { proxyFromEnvironment } from "./proxy.ts";

useConnections();

describe("proxies", () => {
  const port = (listener: Server) => (listener.address() as AddressInfo).port;
  const listening = async <T extends Server>(listener: T): Promise<T> => {
    await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
    open.push(listener);
    return listener;
  };

  it("tunnels through an HTTP proxy", async () => {
    await serve({ tls });
    const targets: string[] = [];
    const proxy = await listening(
      createHttp().on("connect", (request, socket) => {
        targets.push(`${request.url} ${request.headers["proxy-authorization"]}`);
        const [host, target] = request.url!.split(":");
        const onward = connect(Number(target), host, () => {
          socket.write("HTTP/1.1 200 OK\r\n\r\n");
          onward.pipe(socket).pipe(onward);
        });
        socket.on("error", () => onward.destroy());
      }),
    );
    const url = `http://me:secret@127.0.0.1:${port(proxy)}`;
    expect(await listServices({ kubeconfig: await kubeconfig({ ...trust, "proxy-url": url }) })).toEqual(
      list,
    );
    expect(targets).toEqual([`${new URL(server.url).host} Basic ${base64("me:secret")}`]);
  });

  it("reports that the proxy refuses", async () => {
    await serve();
    const proxy = await listening(
      createHttp().on("connect", (_, socket) => socket.end("HTTP/1.1 403 No\r\n\r\n")),
    );
    const path = await kubeconfig({ "proxy-url": `http://127.0.0.1:${port(proxy)}` });
    await expect(listServices({ kubeconfig: path })).rejects.toThrow("answered 403");
    await expect(
      listServices({ kubeconfig: await kubeconfig({ "proxy-url": "gopher://x" }) }),
    ).rejects.toThrow("gopher");
  });

  it("tunnels through SOCKS5", async () => {
    await serve();
    const proxy = await listening(
      createTcp((socket) => {
        socket.once("data", () => {
          socket.write(Buffer.from([5, 0]));
          socket.once("data", (data) => {
            const wanted = data as Buffer;
            const name = wanted.subarray(5, 5 + wanted[4]!).toString();
            const onward = connect(wanted.readUInt16BE(5 + wanted[4]!), name, () => {
              socket.write(Buffer.from([5, 0, 0, 1, 127, 0, 0, 1, 0, 80]));
              onward.pipe(socket).pipe(onward);
            });
            socket.on("error", () => onward.destroy());
          });
        });
      }),
    );
    expect(
      await listServices({
        kubeconfig: await kubeconfig({ "proxy-url": `socks5://127.0.0.1:${port(proxy)}` }),
      }),
    ).toEqual(list);
  });

  it("follows the environment as Go does", () => {
    const via = (url: string, extra: Record<string, string> = {}) =>
      proxyFromEnvironment(new URL(url), { HTTPS_PROXY: "proxy.example:3128", ...extra })?.href ?? null;
    expect(via("https://10.0.0.1")).toBe("http://proxy.example:3128/");
    expect(via("http://10.0.0.1")).toBeNull();
    expect(via("https://127.0.0.1:6443")).toBeNull();
    expect(via("https://localhost")).toBeNull();
    expect(via("https://10.0.0.1", { NO_PROXY: "10.0.0.0/8" })).toBeNull();
    expect(via("https://[fd00::1]", { no_proxy: "fd00::/8" })).toBeNull();
    expect(via("https://api.example.com", { NO_PROXY: "x, .example.com" })).toBeNull();
    expect(via("https://api.example.com:6443", { NO_PROXY: "example.com:443" })).not.toBeNull();
    expect(via("https://notexample.com", { NO_PROXY: "example.com" })).not.toBeNull();
    expect(via("https://10.0.0.1", { NO_PROXY: "*" })).toBeNull();
  });
});
