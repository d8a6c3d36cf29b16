// The tools in the container of every deployment we ship, and in kubeadm's DaemonSet with only the image replaced.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { objectsIn, renderChart } from "../support/helm.ts";
import { type Container, type PodSpec, reasonNotToContain, runContainer } from "./container.ts";
import { shop } from "./shop.ts";
import { eventually, nodeObject, openSite, reasonNotToRun, type Site } from "./site.ts";

const reason = reasonNotToRun() ?? reasonNotToContain();
const root = join(import.meta.dirname, "..", "..");

type DaemonSet = { readonly kind: string; readonly spec: { readonly template: { readonly spec: PodSpec } } };
const base = podIn(objectsIn(readFileSync(join(root, "deploy/base/daemonset.yaml"), "utf8")));
const chart = podIn(rendered({}));
const chartWithNetRaw = podIn(rendered({ netRaw: true }));

function rendered(values: object): readonly unknown[] {
  return renderChart(join(root, "deploy/chart"), "kube-system", {
    apiServer: { host: "192.168.0.1" },
    ...values,
  });
}

function podIn(objects: readonly unknown[]): PodSpec {
  return (objects as DaemonSet[]).find(({ kind }) => kind === "DaemonSet")!.spec.template.spec;
}

/** The parts of the DaemonSet that kubeadm 1.37 writes, with our image: a writable root, privileged, and no volume of ours. */
const kubeadm: PodSpec = {
  containers: [
    {
      command: [
        "/usr/local/bin/kube-proxy",
        "--config=/var/lib/kube-proxy/config.conf",
        "--hostname-override=$(NODE_NAME)",
      ],
      env: [{ name: "NODE_NAME" }],
      securityContext: { privileged: true },
      volumeMounts: [
        { name: "kube-proxy", mountPath: "/var/lib/kube-proxy" },
        { name: "xtables-lock", mountPath: "/run/xtables.lock" },
        { name: "lib-modules", mountPath: "/lib/modules", readOnly: true },
      ],
    },
  ],
  volumes: [{ name: "kube-proxy" }, { name: "xtables-lock" }, { name: "lib-modules" }],
};

describe("the tools in a container", () => {
  let site: Site;
  let folder: string;
  let container: Container | null = null;
  beforeEach(async ({ skip }) => {
    skip(reason !== null, reason ?? "");
    folder = mkdtempSync(join(tmpdir(), "turnout-container-"));
    site = await openSite();
    await site.openApi();
    const [node, ...objects] = [nodeObject(), ...shop()];
    for (const object of [{ ...node!, metadata: { name: "node-under-test" } }, ...objects])
      site.api.put(object);
  });
  afterEach(async () => {
    container?.remove();
    container = null;
    await site?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  it.each<[string, PodSpec, string, string]>([
    ["deploy/base", base, "nftables", "/etc/turnout"],
    ["the chart", chart, "nftables", "/etc/turnout"],
    ["the chart with netRaw", chartWithNetRaw, "iptables", "/etc/turnout"],
    ["kubeadm's DaemonSet in nftables mode", kubeadm, "nftables", "/var/lib/kube-proxy"],
    ["kubeadm's DaemonSet in iptables mode", kubeadm, "iptables", "/var/lib/kube-proxy"],
  ])("security/16: work without flags in %s", async (_, pod, mode, place) => {
    const config = configIn(mode, place);
    const { code, log } = await site.finish({
      config: { mode, hostnameOverride: "node-under-test" },
      args: ["--init-only"],
    });
    expect({ code, log }).toMatchObject({ code: 0 });
    expect(log).not.toContain("status socket");
    container = runContainer(site.netns, folder, pod, {
      config,
      "kube-proxy": config,
      modules: makeFolder("modules"),
      "lib-modules": makeFolder("modules"),
      "xtables-lock": makeFile("xtables.lock"),
    });
    const { exec } = container;
    const row = async () => (await exec("turnout", "status", "-o", "row")).out.split("\t");
    const isReady = async () => {
      if (!container!.running()) throw new Error(`The container ended:\n${container!.log()}`);
      const [, , health, synced] = await row();
      return health === "ok" && synced !== "not yet";
    };
    await eventually(isReady, "a healthy daemon");
    expect(container.log()).not.toContain("Cannot serve the status socket");
    expect((await exec("stat", "-c", "%a %u", "/run/turnout", "/run/turnout/status.sock")).out).toBe(
      "700 0\n600 0\n",
    );

    expect((await row()).slice(0, 3)).toEqual(["node-under-test", mode, "ok"]);
    const explained = await exec("turnout", "explain", "--live", "node", "svc/web:80");
    expect(explained).toMatchObject({
      code: 0,
      err: "",
      out: expect.stringContaining("as node-under-test sees it"),
    });
    expect(explained.out).toContain("kernel    agrees");
    expect(await exec("turnout", "diff", "--live")).toEqual({
      code: 0,
      err: "",
      out: "The kernel holds what it should.\n",
    });
    expect(await exec("turnout", "render", "-o", mode)).toMatchObject({
      code: 0,
      out: expect.stringContaining("172.30.0.10"),
    });
    expect(await exec("turnout", "flows", "--by=service")).toEqual({
      code: 0,
      err: "",
      out: "No flows of Services.\n",
    });
    expect(await exec("turnout", "doctor", "flows", "--wait=0")).toMatchObject({
      code: 0,
      err: "",
      out: expect.stringContaining("ok        endpoint-gone   none\n"),
    });
    const doctor = await exec("turnout", "doctor", "-o", "json");
    expect(doctor.err).toBe("");
    const { checks } = JSON.parse(doctor.out) as {
      checks: { name: string; result: string; details: string[] }[];
    };
    expect(checks.filter(({ result }) => result === "failed")).toEqual([]);
    expect(checks.map(({ name }) => name)).toContain("conntrack");
  });

  it("security/16: a daemon that cannot create the socket logs that once, and works", async () => {
    const config = configIn("nftables", "/var/lib/kube-proxy");
    const [plain] = kubeadm.containers;
    const pod = {
      ...kubeadm,
      containers: [{ ...plain!, securityContext: { privileged: true, readOnlyRootFilesystem: true } }],
    };
    container = runContainer(site.netns, folder, pod, {
      "kube-proxy": config,
      "lib-modules": makeFolder("modules"),
      "xtables-lock": makeFile("xtables.lock"),
    });
    await eventually(() => container!.log().includes("First Sync succeeded"), "a Sync");
    const lines = container
      .log()
      .split("\n")
      .filter((line) => line.includes("status socket"));
    expect(lines).toEqual([
      expect.stringMatching(/Cannot serve the status socket.*reason="E[A-Z]+: .*mkdir/),
    ]);
    expect(await container.exec("turnout", "status")).toMatchObject({
      code: 1,
      err: expect.stringContaining("/run/turnout/status.sock does not exist"),
    });
  });

  it("TURNOUT_STATUS_SOCKET moves the socket for the daemon and for the tools", async () => {
    const config = configIn("nftables", "/var/lib/kube-proxy");
    const [plain] = kubeadm.containers;
    const env = [...plain!.env!, { name: "TURNOUT_STATUS_SOCKET", value: "/tmp/there/sock" }];
    container = runContainer(
      site.netns,
      folder,
      { ...kubeadm, containers: [{ ...plain!, env }] },
      {
        "kube-proxy": config,
        "lib-modules": makeFolder("modules"),
        "xtables-lock": makeFile("xtables.lock"),
      },
    );
    await eventually(async () => (await container!.exec("turnout", "status")).code === 0, "an answer");
    expect(statSync(join(folder, "bundle/rootfs/tmp/there")).mode & 0o777).toBe(0o700);
  });

  /** A folder as the ConfigMap is mounted: the configuration, and the kubeconfig that it names by the path in the container. */
  function configIn(mode: string, place: string): string {
    const path = site.configure({ mode, hostnameOverride: "node-under-test" });
    const target = makeFolder("config");
    const text = readFileSync(path, "utf8").replaceAll(
      `${site.folder}/kubeconfig.json`,
      `${place}/kubeconfig.conf`,
    );
    writeFileSync(join(target, "config.conf"), text);
    writeFileSync(join(target, "kubeconfig.conf"), readFileSync(join(site.folder, "kubeconfig.json")));
    return target;
  }

  function makeFolder(name: string): string {
    mkdirSync(join(folder, name), { recursive: true });
    return join(folder, name);
  }

  function makeFile(name: string): string {
    writeFileSync(join(folder, name), "");
    return join(folder, name);
  }
});
