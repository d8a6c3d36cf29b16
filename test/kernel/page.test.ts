// The page of a running daemon: nothing without the flag, loopback with it, and turnout page through the status socket.
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { queryDaemon, saveHeap } from "../../src/observe/status/client.ts";
import type { ExplainView, NodeView, ServicesView } from "../../src/page/json.ts";
import { remoteViews } from "../../src/page/remote-views.ts";
import { httpGet } from "./http.ts";
import { shop } from "./shop.ts";
import { type Daemon, eventually, nodeObject, openSite, reasonNotToRun, type Site } from "./site.ts";

/** Of a heap snapshot; a node has its type and its name first. */
type Heap = { readonly nodes: readonly number[]; readonly strings: readonly string[] };

const reason = reasonNotToRun();
const turnout = join(import.meta.dirname, "../../bin/turnout");

describe("the page of a daemon", () => {
  let site: Site;
  let tool: ChildProcess | null = null;
  beforeEach(({ skip }) => skip(reason !== null, reason ?? ""));
  afterEach(async () => {
    tool?.kill("SIGKILL");
    tool = null;
    await site?.close();
  });

  const socket = () => join(site.folder, "status.sock");
  const started = async (...args: readonly string[]): Promise<Daemon> => {
    site = await openSite();
    await site.openApi();
    for (const object of [nodeObject(), ...shop()]) site.api.put(object);
    const daemon = site.start({ program: "turnout run", args: [`--status-socket=${socket()}`, ...args] });
    await daemon.ready();
    return daemon;
  };
  const listeners = () =>
    site.netns
      .run("ss", "-Hltn")
      .split("\n")
      .map((line) => line.trim().split(/\s+/)[3] ?? "")
      .filter((address) => address !== "" && !address.endsWith(":6443"))
      .sort();
  const view = async <T>(name: string, query = "") => {
    const { status, body } = await remoteViews(socket()).answer(name, new URLSearchParams(query));
    return { status, value: JSON.parse(body) as T };
  };
  /** How many functions and objects of this class the daemon has. */
  const instances = async (name: string, file: string) => {
    await saveHeap(socket(), join(site.folder, file));
    const { nodes, strings } = JSON.parse(readFileSync(join(site.folder, file), "utf8")) as Heap;
    const width = 6;
    const [object, closure] = [3, 5];
    let found = 0;
    for (let at = 0; at < nodes.length; at += width)
      if ((nodes[at] === object || nodes[at] === closure) && strings[nodes[at + 1]!] === name) found++;
    return found;
  };
  const command = (...args: readonly string[]) => site.netns.run(turnout, ...args);

  it("is not loaded and has no listener before it is used", async () => {
    await started();
    expect(listeners()).toEqual(["127.0.0.1:10249", "127.0.0.1:10256"]);
    expect(await instances("ServiceTable", "before")).toBe(0);
    // The same after the first request: so the check above can fail.
    expect((await view<ServicesView>("services")).value.total).toBeGreaterThan(0);
    expect(await instances("ServiceTable", "after")).toBeGreaterThan(0);
    expect(listeners()).toHaveLength(2);
  });

  it("shows what the tools print: status, Services, one packet and the kernel", async () => {
    await started();
    const status = await queryDaemon(socket(), "/");
    const { value: node } = await view<NodeView>("node");
    expect(node.status?.syncs).toEqual(status.syncs);
    expect(node.status?.configuration).toBe(status.configuration);
    expect(node.head).toMatchObject({ state: "healthy", node: status.node, mode: status.mode });
    const { value: services } = await view<ServicesView>("services");
    expect(services.rows.map((row) => row.service)).toContain("shop/web");
    const question = ["node", "svc/shop/web"] as const;
    const printed = JSON.parse(
      command("explain", ...question, `--source=daemon:${socket()}`, "--live", "-o", "json"),
    ) as ExplainView;
    const { value } = await view<ExplainView>("explain", "from=node&to=svc/shop/web&live=1");
    const { picture, ...explained } = value;
    expect(picture?.paths).toHaveLength(1);
    expect({ ...explained, kernel: { ...explained.kernel, flows: [] } }).toEqual({
      ...printed,
      kernel: { ...printed.kernel, flows: [] },
    });
    expect(explained.kernel?.agrees).toBe(true);
    site.netns.run("nft", "add", "chain", "ip", "kube-proxy", "foreign");
    await eventually(async () => (await view<NodeView>("node")).value.head.drift !== null, "the drift");
  });

  it("security/17: --page-address serves it on loopback, with the token that turnout page prints", async () => {
    await started("--page-address=127.0.0.1:10270");
    await eventually(() => listeners().includes("127.0.0.1:10270"), "the listener");
    const url = command("page", `--source=daemon:${socket()}`).trim();
    const [, token] = /^http:\/\/127\.0\.0\.1:10270\/#token=([\w-]{32})$/.exec(url) ?? [];
    expect(url).toContain(`#token=${token}`);
    const get = (path: string, headers: Readonly<Record<string, string>> = {}) =>
      httpGet(site.netns, `http://127.0.0.1:10270${path}`, headers);
    expect((await get("/"))?.body).toContain('<script type="module" src="/app.js">');
    expect((await get("/api/services"))?.status).toBe(401);
    const answer = await get("/api/services", { authorization: `Bearer ${token}` });
    expect(JSON.parse(answer!.body).rows.length).toBeGreaterThan(0);
    expect((await get("/", { host: "evil.example" }))?.status).toBe(403);
  });

  it("security/17: an address that others could reach is refused", async () => {
    site = await openSite();
    for (const address of ["0.0.0.0:10270", "[::]:10270", "192.168.0.2:10270", ":10270"]) {
      const { code, log } = await site.finish({
        program: "turnout run",
        args: [`--page-address=${address}`],
      });
      expect([code, log]).toEqual([1, expect.stringContaining("must be a loopback address")]);
      const env = { TURNOUT_PAGE_ADDRESS: address };
      const dropIn = await site.finish({ env });
      expect([dropIn.code, dropIn.log]).toEqual([1, expect.stringContaining("TURNOUT_PAGE_ADDRESS")]);
    }
  });

  it("turnout page serves it through the socket, until its input ends", async () => {
    await started();
    const args = ["page", `--source=daemon:${socket()}`, "--address=127.0.0.1:10271", "--until-stdin-ends"];
    let printed = "";
    tool = spawn("ip", ["netns", "exec", site.netns.name, turnout, ...args], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    tool.stdout!.setEncoding("utf8").on("data", (text: string) => {
      printed += text;
    });
    await eventually(() => printed.includes("\n"), "the URL");
    const headers = { authorization: `Bearer ${printed.trim().split("=")[1]}` };
    const answer = await httpGet(site.netns, "http://127.0.0.1:10271/api/services", headers);
    expect(JSON.parse(answer!.body).rows.length).toBeGreaterThan(0);
    const ended = new Promise((resolve) => tool!.once("exit", resolve));
    tool.stdin!.end();
    expect(await ended).toBe(0);
  });
});
