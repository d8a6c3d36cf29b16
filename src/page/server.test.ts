// The page is for the user who opened it: Host, Origin, token and methods are checked before anything is answered.
import { request } from "node:http";
import { Readable } from "node:stream";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { PageViews } from "../observe/status/page-views.ts";
import { parsePageAddress } from "./address.ts";
import { type OpenPage, openPage, type Page } from "./server.ts";

const views: PageViews = {
  answer: async (view, query) => ({ status: 200, body: JSON.stringify({ view, query: query.toString() }) }),
  events: () => Readable.from(["data: {}\n\n"]),
};

const page: Page = {
  files: {
    "/": { type: "text/html; charset=utf-8", gzip: gzipSync("<p>page</p>").toString("base64"), etag: '"1"' },
  },
  nodes: new Map([
    ["node-a", views],
    ["node-b", { ...views, answer: async () => ({ status: 200, body: '"b"' }) }],
  ]),
  flags: "--source=playground",
  act: null,
};

let open: OpenPage;
beforeEach(async () => {
  open = await openPage(page, { host: "127.0.0.1", port: 0 });
});
afterEach(() => open.close());

type Reply = { readonly status: number; readonly headers: Record<string, unknown>; readonly body: string };

/** Without the restrictions of fetch, which would not send a foreign Host. */
function send(path: string, headers: Record<string, string> = {}, method = "GET", body = ""): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const call = request({ host: "127.0.0.1", port: open.port, path, method, headers }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (some) => {
        text += some;
      });
      response.on("end", () =>
        resolve({ status: response.statusCode!, headers: response.headers, body: text }),
      );
    });
    call.on("error", reject).end(body);
  });
}

const own = () => `127.0.0.1:${open.port}`;
const bearer = () => ({ authorization: `Bearer ${open.token}` });

async function cookie(): Promise<string> {
  const headers = { origin: `http://${own()}`, "content-type": "application/json" };
  const reply = await send("/api/session", headers, "POST", JSON.stringify({ token: open.token }));
  expect(reply.status).toBe(200);
  return String(reply.headers["set-cookie"]);
}

describe("security/17: the token", () => {
  it("is in the part of the URL that no server receives", () => {
    expect(open.url).toBe(`http://127.0.0.1:${open.port}/#token=${open.token}`);
    expect(open.token.length).toBeGreaterThanOrEqual(32);
  });

  it("is exchanged for a cookie that scripts cannot read and other sites do not send", async () => {
    const text = await cookie();
    expect(text).toMatch(/^turnout-[0-9a-f]{12}=[\w-]{32}; Path=\/; HttpOnly; SameSite=Strict$/);
    expect(text).not.toContain(open.token);
    const reply = await send("/api/services", { cookie: `a=b; ${text.split(";")[0]}` });
    expect([reply.status, JSON.parse(reply.body).view]).toEqual([200, "services"]);
  });

  it("has a cookie of another name in another instance", async () => {
    const first = (await cookie()).split("=")[0];
    await open.close();
    open = await openPage(page, { host: "127.0.0.1", port: 0 });
    expect((await cookie()).split("=")[0]).not.toBe(first);
  });

  it("is required for all of the API", async () => {
    for (const path of ["services", "page", "events", "act", "node", "nothing"])
      expect([path, (await send(`/api/${path}`)).status]).toEqual([path, 401]);
    for (const wrong of ["Bearer wrong", "Bearer ", `Basic ${open.token}`, `Bearer ${open.token}x`])
      expect((await send("/api/services", { authorization: wrong })).status).toBe(401);
    for (const wrong of ["turnout-1=x", "=", ""])
      expect((await send("/api/services", { cookie: wrong })).status).toBe(401);
    expect((await send("/api/services", bearer())).status).toBe(200);
  });

  it("if wrong or missing, opens no session", async () => {
    const headers = { origin: `http://${own()}` };
    for (const body of [
      "",
      "{",
      "null",
      '{"token":""}',
      '{"token":"wrong"}',
      '{"token":["x"]}',
      "x".repeat(20_000),
    ]) {
      const reply = await send("/api/session", headers, "POST", body);
      expect([reply.status, reply.headers["set-cookie"]]).toEqual([401, undefined]);
    }
  });
});

describe("security/17: requests of other pages", () => {
  it.each([
    "evil.example",
    "evil.example:80",
    "127.0.0.1.evil.example",
    "10.0.0.1",
    "localhost.evil",
    "0.0.0.0",
  ])("Host %s is refused for every path", async (host) => {
    for (const path of ["/", "/api/services", "/api/session"])
      expect((await send(path, { ...bearer(), host })).status).toBe(403);
  });

  it.each(["localhost", "localhost:8270", "127.0.0.1:1", "[::1]:8270"])(
    "Host %s is ours, with any port",
    async (host) => {
      expect((await send("/api/services", { ...bearer(), host })).status).toBe(200);
    },
  );

  it("a foreign Origin is refused, also with the token", async () => {
    for (const origin of ["http://evil.example", "null", "http://127.0.0.1:1", `https://${own()}`, ""])
      for (const path of ["/api/services", "/"])
        expect([origin, (await send(path, { ...bearer(), origin })).status]).toEqual([origin, 403]);
    expect((await send("/api/services", { ...bearer(), origin: `http://${own()}` })).status).toBe(200);
  });

  it("a request that changes something must have an Origin", async () => {
    const body = JSON.stringify({ token: open.token });
    expect((await send("/api/session", {}, "POST", body)).status).toBe(403);
  });

  it("a request that the browser marks as cross-site is refused", async () => {
    const status = async (site: string) =>
      (await send("/api/services", { ...bearer(), "sec-fetch-site": site })).status;
    expect(await Promise.all(["cross-site", "same-site", "same-origin", "none"].map(status))).toEqual([
      403, 403, 200, 200,
    ]);
  });
});

describe("answers", () => {
  it("every one forbids scripts and embedding by other sites", async () => {
    for (const path of ["/", "/nothing", "/api/services", "/api/page"]) {
      const { headers } = await send(path, bearer());
      const policy = String(headers["content-security-policy"]);
      expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self'");
      expect(policy).toContain("frame-ancestors 'none'");
      expect(policy).not.toContain("unsafe");
      expect(headers["x-content-type-options"]).toBe("nosniff");
    }
  });

  it("static files are compressed, and not sent twice", async () => {
    const plain = await send("/");
    expect([plain.status, plain.body, plain.headers["content-encoding"]]).toEqual([
      200,
      "<p>page</p>",
      undefined,
    ]);
    const packed = await send("/", { "accept-encoding": "gzip, br" });
    expect(packed.headers["content-encoding"]).toBe("gzip");
    expect((await send("/", { "if-none-match": '"1"' })).status).toBe(304);
    for (const path of ["/toString", "/../package.json", "/%2e%2e/x", "//"])
      expect((await send(path)).status).toBe(404);
  });

  it("the views are those of the node that was asked for", async () => {
    const body = async (path: string) => JSON.parse((await send(path, bearer())).body);
    expect(await body("/api/services?q=x")).toEqual({ view: "services", query: "q=x" });
    expect(await body("/api/services?node=node-b")).toBe("b");
    expect((await send("/api/services?node=nobody", bearer())).status).toBe(404);
    expect(await body("/api/page")).toEqual({
      nodes: ["node-a", "node-b"],
      flags: "--source=playground",
      actions: false,
    });
  });

  it("there are no actions, and only GET is allowed elsewhere", async () => {
    const headers = { ...bearer(), origin: `http://${own()}` };
    expect((await send("/api/act", headers, "POST", '{"line":"flush node-a"}')).status).toBe(404);
    for (const path of ["/", "/api/services", "/api/events"])
      for (const method of ["POST", "PUT", "DELETE"])
        expect((await send(path, headers, method)).status).toBe(405);
  });
});

it("only loopback is an address of the page", () => {
  expect(parsePageAddress("127.0.0.1:10270")).toEqual({ host: "127.0.0.1", port: 10270 });
  expect(parsePageAddress("[::1]:0")).toEqual({ host: "::1", port: 0 });
  expect(parsePageAddress("localhost:80")).toEqual({ host: "127.0.0.1", port: 80 });
  expect(parsePageAddress("8270")).toEqual({ host: "127.0.0.1", port: 8270 });
  for (const text of ["0.0.0.0:80", ":80", "[::]:80", "10.0.0.1:80", "127.0.0.1:65536", "127.0.0.1", "x", ""])
    expect([text, parsePageAddress(text)]).toEqual([text, null]);
});
