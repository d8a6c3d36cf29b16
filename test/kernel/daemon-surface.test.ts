// What a running daemon exposes to other users of the machine, and what it reports to the API server.
import { readFileSync, statSync, writeFileSync } from "node:fs";
import type { Server } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ApiServerOptions } from "../../playground/api/server.ts";
import { saveHeap } from "../../src/observe/status/client.ts";
import { nodeName, places } from "../places.ts";
import { enter } from "../reference/foothold.ts";
import { serverCert, serverKey } from "../support/certificates.ts";
import { httpGet } from "./http.ts";
import { shop } from "./shop.ts";
import { eventually, nodeObject, openSite, reasonNotToRun, type Site, sampleOf } from "./site.ts";

const reason = reasonNotToRun();

describe("the daemon", () => {
  let site: Site;
  let taken: Server | null = null;
  beforeEach(({ skip }) => skip(reason !== null, reason ?? ""));
  afterEach(async () => {
    taken?.close();
    taken = null;
    await site?.close();
  });

  async function opened(api: ApiServerOptions = {}): Promise<void> {
    site = await openSite(undefined, api);
    await site.openApi();
    for (const object of [nodeObject(), ...shop()]) site.api.put(object);
  }

  it("security/5: a heap snapshot contains the token, and only the status socket serves it", async () => {
    const secret = "the-bearer-token-of-this-node";
    await opened({ token: () => secret, tls: { key: serverKey, cert: serverCert } });
    writeFileSync(join(site.folder, "token"), secret);
    const socket = join(site.folder, "status.sock");
    const daemon = site.start({
      program: "turnout run",
      args: [`--status-socket=${socket}`],
      config: { enableProfiling: true },
    });
    await daemon.ready();
    const page = (path: string) => httpGet(site.netns, `http://127.0.0.1:10249${path}`);
    expect(await page("/debug/pprof/heap")).toMatchObject({
      status: 403,
      body: expect.stringContaining("turnout status --heap=FILE"),
    });
    for (const path of ["/configz", "/flagz", "/statusz", "/metrics", "/debug/pprof/profile?seconds=0.1"])
      expect((await page(path))?.body).not.toContain(secret);
    const file = join(site.folder, "daemon.heapsnapshot");
    await saveHeap(socket, file);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(statSync(socket).mode & 0o777).toBe(0o600);
    expect(readFileSync(file, "latin1")).toContain(secret);
    await expect(saveHeap(socket, file)).rejects.toThrow("EEXIST");
  });

  it.each(["kube-proxy", "turnout run"] as const)(
    "security/9: SIGUSR1 does not open the inspector of %s, and does not end it",
    async (program) => {
      await opened();
      const daemon = site.start({
        program,
        args: program === "kube-proxy" ? [] : [`--status-socket=${join(site.folder, "sock")}`],
      });
      await daemon.ready();
      daemon.kill("SIGUSR1");
      for (const object of shop({ clusterIP: "172.30.0.99" })) site.api.put(object);
      await eventually(
        () => site.netns.run("nft", "list", "ruleset").includes("172.30.0.99"),
        "a Sync after the signal",
      );
      expect(site.netns.run("ss", "-Hltn")).not.toContain(":9229");
      expect(daemon.log()).not.toContain("Debugger listening");
      expect(daemon.running()).toBe(true);
    },
  );

  it("behaviour/7: the Events Starting and FailedToStartProxierHealthcheck reach the API server", async () => {
    await opened();
    const daemon = site.start();
    await daemon.ready();
    const eventsFor = (reasonOfEvent: string) =>
      site.api.list("Event").filter((event) => event.reason === reasonOfEvent);
    await eventually(() => eventsFor("Starting").length > 0, "the Event Starting");
    const about = { kind: "Node", name: nodeName };
    expect(eventsFor("Starting")).toEqual([
      expect.objectContaining({
        type: "Normal",
        action: "StartKubeProxy",
        regarding: expect.objectContaining(about),
      }),
    ]);
    daemon.kill("SIGKILL");
    await daemon.ended();
    taken = await enter(site.netns).listen("127.0.0.1", 10256);
    const { code } = await site.finish({ config: { bindAddressHardFail: true } });
    expect(code).toBe(1);
    expect(eventsFor("FailedToStartProxierHealthcheck")).toEqual([
      expect.objectContaining({
        type: "Warning",
        action: "StartKubeProxy",
        regarding: expect.objectContaining(about),
        note: expect.stringContaining("EADDRINUSE"),
        reportingController: "kube-proxy",
      }),
    ]);
  });

  it("security/14: an external IP that is this node's address is a Problem, in log, metrics and status", async () => {
    await opened();
    const [evil] = shop({ clusterIP: "172.30.0.66" });
    const metadata = { ...(evil!.metadata as object), name: "evil" };
    const ports = [{ name: "ssh", port: 22, protocol: "TCP" }];
    const spec = { ...(evil!.spec as object), externalIPs: [places.host, "127.0.0.1"], ports };
    site.api.put({ ...evil!, metadata, spec });
    const socket = join(site.folder, "status.sock");
    const daemon = site.start({ program: "turnout run", args: [`--status-socket=${socket}`] });
    await daemon.ready();
    const metric = 'turnout_intercepted_addresses{ip_family="IPv4",kind="external-ip",of="node"}';
    expect(sampleOf(await daemon.metrics(), metric)).toBe(1);
    expect(sampleOf(await daemon.metrics(), 'turnout_problems{kind="intercepts"}')).toBe(2);
    expect(daemon.log()).toMatch(
      /^E.*is an address of this node: traffic to it at tcp port 22 .*CVE-2020-8554.*evil/m,
    );
    const status = site.netns.run(
      join(import.meta.dirname, "../../bin/turnout"),
      "status",
      `--source=daemon:${socket}`,
    );
    expect(status).toContain("addresses 1 external IPs are addresses of this node (CVE-2020-8554)");
    // The API server of this test is at 127.0.0.1, as in its kubeconfig.
    expect(status).toContain("1 external IPs are addresses of the API server (CVE-2020-8554)");
  });

  it("security/6: a token in the kubeconfig of a server without TLS is not sent, and this is logged", async () => {
    await opened();
    const kubeconfig = JSON.parse(readFileSync(join(site.folder, "kubeconfig.json"), "utf8"));
    kubeconfig.users[0].user.token = "the-bearer-token-of-this-node";
    writeFileSync(join(site.folder, "kubeconfig.json"), JSON.stringify(kubeconfig));
    const daemon = site.start();
    await daemon.ready();
    expect(
      daemon.log().match(/^E.*"Connection to the API server is not secure" err="no credentials/gm),
    ).toHaveLength(1);
    expect(site.api.seen.filter(({ headers }) => headers.authorization !== undefined)).toEqual([]);
  });
});
