// Connects to the API through a proxy: HTTP or HTTPS with CONNECT, or SOCKS5; reads the proxy from the environment.
import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { BlockList, connect as connectTcp, isIP, type Socket } from "node:net";
import type { Clock } from "../world.ts";

/** The same as the timeout for a response header. */
const tunnelMs = 30_000;

/** A TCP connection to the target through the proxy; fails when the proxy does not respond in time. */
export async function tunnel(proxy: URL, host: string, port: number, clock: Clock): Promise<Socket> {
  const limit = new AbortController();
  const silence = new Error(`proxy ${proxy.host} does not answer within ${tunnelMs / 1000} s`);
  const cancel = clock.after(tunnelMs, () => limit.abort(silence));
  try {
    return await tunnelBy(proxy, host, port, limit.signal);
  } finally {
    cancel();
  }
}

async function tunnelBy(proxy: URL, host: string, port: number, signal: AbortSignal): Promise<Socket> {
  switch (proxy.protocol) {
    case "http:":
    case "https:":
      return httpTunnel(proxy, host, port, signal);
    case "socks5:":
    case "socks5h:":
      return socksTunnel(proxy, host, port, signal);
    default:
      throw new Error(
        `Cannot use proxy ${proxy.host}: ${proxy.protocol.slice(0, -1)} is not http, https or socks5`,
      );
  }
}

/** HTTPS_PROXY or HTTP_PROXY unless NO_PROXY names the server; never for localhost. */
export function proxyFromEnvironment(
  server: URL,
  env: Readonly<Record<string, string | undefined>>,
): URL | null {
  const either = (name: string) => env[name] || env[name.toLowerCase()] || "";
  const wanted = either(server.protocol === "https:" ? "HTTPS_PROXY" : "HTTP_PROXY");
  const host = bareHost(server);
  if (wanted === "" || host === "localhost" || isLoopback(host) || isExempt(host, server, either("NO_PROXY")))
    return null;
  return proxyUrl(wanted.includes("://") ? wanted : `http://${wanted}`);
}

export function proxyUrl(text: string): URL {
  if (!URL.canParse(text)) {
    // It may contain a password.
    const shown = text.includes("@") ? "proxy" : `proxy ${JSON.stringify(text)}`;
    throw new Error(`Cannot use ${shown}: it is not a URL`);
  }
  return new URL(text);
}

export function bareHost(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, "");
}

export function portOf(url: URL): number {
  const usual: Record<string, number> = { "http:": 80, "https:": 443, "socks5:": 1080, "socks5h:": 1080 };
  return url.port === "" ? (usual[url.protocol] ?? 0) : Number(url.port);
}

function isLoopback(host: string): boolean {
  return host === "::1" || (isIP(host) === 4 && host.startsWith("127."));
}

/** `*`, `example.com` (with its subdomains), `.example.com`, an address, a network; a name may carry a port. */
function isExempt(host: string, server: URL, rules: string): boolean {
  return rules
    .split(",")
    .map((rule) => rule.trim().toLowerCase())
    .filter((rule) => rule !== "")
    .some((rule) => exempts(rule, host, portOf(server)));
}

function exempts(rule: string, host: string, port: number): boolean {
  if (rule === "*" || rule === host) return true;
  if (rule.includes("/")) return inNetwork(host, rule);
  if (isIP(rule) !== 0) return false;
  const [, name, wantedPort] = /^\*?\.?\[?(.*?)\]?(?::([0-9]+))?$/.exec(rule)!;
  if (wantedPort !== undefined && Number(wantedPort) !== port) return false;
  return host === name || (isIP(host) === 0 && host.endsWith(`.${name}`));
}

function inNetwork(host: string, cidr: string): boolean {
  const [network = "", length = ""] = cidr.split("/");
  const version = isIP(network);
  if (version === 0 || isIP(host) !== version || !/^[0-9]{1,3}$/.test(length)) return false;
  if (Number(length) > (version === 4 ? 32 : 128)) return false;
  const type = version === 4 ? "ipv4" : "ipv6";
  const list = new BlockList();
  list.addSubnet(network, Number(length), type);
  return list.check(host, type);
}

function httpTunnel(proxy: URL, host: string, port: number, signal: AbortSignal): Promise<Socket> {
  const target = `${host.includes(":") ? `[${host}]` : host}:${port}`;
  const secret = `${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`;
  const headers = {
    host: target,
    ...(proxy.username === ""
      ? {}
      : { "proxy-authorization": `Basic ${Buffer.from(secret).toString("base64")}` }),
  };
  return new Promise((resolve, reject) => {
    const send = proxy.protocol === "https:" ? httpsRequest : httpRequest;
    const request = send({
      host: bareHost(proxy),
      port: portOf(proxy),
      method: "CONNECT",
      path: target,
      headers,
      agent: false,
    });
    request.once("connect", (response, socket) => {
      if (response.statusCode === 200) return resolve(socket);
      socket.destroy();
      reject(new Error(`Cannot connect to ${target}: proxy ${proxy.host} answered ${response.statusCode}`));
    });
    request.on("error", reject);
    signal.addEventListener("abort", () => request.destroy(signal.reason as Error), { once: true });
    request.end();
  });
}

/** RFC 1928 with user and password (RFC 1929); names are resolved by the proxy. */
async function socksTunnel(proxy: URL, host: string, port: number, signal: AbortSignal): Promise<Socket> {
  const socket = connectTcp({ host: bareHost(proxy), port: portOf(proxy) });
  signal.addEventListener("abort", () => socket.destroy(signal.reason as Error), { once: true });
  const refuse = (why: string) => new Error(`Cannot connect to ${host}:${port}: proxy ${proxy.host} ${why}`);
  try {
    const user = Buffer.from(decodeURIComponent(proxy.username));
    const password = Buffer.from(decodeURIComponent(proxy.password));
    socket.write(Buffer.from(user.length > 0 ? [5, 1, 2] : [5, 1, 0]));
    const [, method] = await bytes(socket, 2);
    if (method === 2) {
      socket.write(
        Buffer.concat([Buffer.from([1, user.length]), user, Buffer.from([password.length]), password]),
      );
      if ((await bytes(socket, 2))[1] !== 0) throw refuse("rejected the user");
    } else if (method !== 0) throw refuse("requires another authentication method");
    const name = Buffer.from(host);
    socket.write(
      Buffer.concat([Buffer.from([5, 1, 0, 3, name.length]), name, Buffer.from([port >> 8, port & 255])]),
    );
    const [, code, , type] = await bytes(socket, 4);
    if (code !== 0) throw refuse(`answered with code ${code}`);
    const length = type === 1 ? 4 : type === 4 ? 16 : (await bytes(socket, 1))[0]!;
    await bytes(socket, length + 2);
    return socket;
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

/** Reads exactly this many bytes from the socket. */
function bytes(socket: Socket, count: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const attempt = () => {
      const found = socket.read(count) as Buffer | null;
      if (found) settle(() => resolve(found));
    };
    const fail = (error?: Error) =>
      settle(() => reject(error ?? new Error("the proxy closed the connection")));
    const closed = () => fail();
    const settle = (act: () => void) => {
      socket.off("readable", attempt).off("error", fail).off("close", closed);
      act();
    };
    socket.on("readable", attempt).on("error", fail).on("close", closed);
    attempt();
  });
}
