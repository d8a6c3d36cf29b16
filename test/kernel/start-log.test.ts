// The log of a normal start with the DaemonSet's command lines is the one in docs/operations.md.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { nodeName } from "../places.ts";
import { objectsIn } from "../support/helm.ts";
import { shop } from "./shop.ts";
import { eventually, nodeObject, openSite, reasonNotToRun, type Site } from "./site.ts";

const root = join(import.meta.dirname, "..", "..");
const text = (name: string) => readFileSync(join(root, name), "utf8");
const reason = reasonNotToRun();

// biome-ignore lint/suspicious/noExplicitAny: manifests are trees of anything
const pod = (objectsIn(text("deploy/base/daemonset.yaml"))[0] as any).spec.template.spec;

describe("the log of a start", () => {
  let site: Site;
  beforeEach(async ({ skip }) => {
    skip(reason !== null, reason ?? "");
    site = await openSite();
    await site.openApi();
    for (const object of [nodeObject(), ...shop()]) site.api.put(object);
  });
  afterEach(() => site?.close());

  /** The container's arguments, with our files in place of those in the image. */
  function argumentsOf(container: { readonly args: readonly string[] }): string[] {
    const config = join(site.folder, "config.conf");
    const shipped = text("deploy/base/config.conf");
    expect(shipped).toContain(kubeconfigPath);
    // The largest number of conntrack entries belongs to the whole machine: it stays as it is.
    const changed = shipped.replace(kubeconfigPath, join(site.folder, "kubeconfig.json"));
    writeFileSync(config, `${changed}conntrack: {maxPerCore: 0}\n`);
    const args = container.args.map((each) =>
      each.replace("/etc/turnout/config.conf", config).replace("$(NODE_NAME)", nodeName),
    );
    return [...args, "-v=0"];
  }

  it("behaviour/1: init container and daemon log what docs/operations.md shows", async () => {
    const [init] = pod.initContainers;
    const [daemon] = pod.containers;
    const env = { NODE_OPTIONS: "" };
    const first = await site.finish({ args: argumentsOf(init), env });
    expect(first.code).toBe(0);
    expect(normalized(first.log)).toEqual(normalized(shown("init container")));

    expect(daemon.command).toEqual(["turnout", "run"]);
    const socket = `--status-socket=${join(site.folder, "status.sock")}`;
    const running = site.start({ program: "turnout run", args: [...argumentsOf(daemon), socket], env });
    await running.ready();
    const isLogged = () => (running.log().match(/"First Sync succeeded"/g) ?? []).length === 2;
    await eventually(isLogged, "both families in the log");
    expect(normalized(running.log())).toEqual(normalized(shown("daemon")));

    // Steady state: a changed Service is synced without a line.
    for (const object of shop({ clusterIP: "172.30.0.11" })) site.api.put(object);
    const rules = () => site.netns.run("nft", "list", "ruleset");
    await eventually(() => rules().includes("172.30.0.11"), "the changed Service in the rules");
    expect(normalized(running.log())).toEqual(normalized(shown("daemon")));
  });

  it("behaviour/1: iptables mode logs that it sets route_localnet, from which value, and why", async () => {
    const { log } = await site.finish({ config: { mode: "iptables" }, args: ["--init-only", "-v=0"] });
    expect(log).toMatch(
      /^I.* sysctl\.ts:1\] "Set kernel setting" file="\/proc\/sys\/net\/ipv4\/conf\/all\/route_localnet" from=0 to=1 reason="serves NodePorts on 127\.0\.0\.0\/8; .*localhostNodePorts.*"$/m,
    );
    const again = await site.finish({ config: { mode: "iptables" }, args: ["--init-only", "-v=0"] });
    expect(again.log).not.toContain("Set kernel setting");
  });

  it("behaviour/1: the log names the Node, its podCIDRs and the API server while it waits for them", async () => {
    site.api.put(nodeObject({ podCIDRs: [] }));
    const daemon = site.start({ config: { detectLocalMode: "NodeCIDR" }, args: ["-v=0"] });
    const waits = `"Waiting" for="podCIDRs of Node \\"${nodeName}\\"" timeout="300s"`;
    await eventually(() => daemon.log().includes(waits), "a line about podCIDRs");
    expect(daemon.log()).toContain(
      `"Waiting" for="the first answer about Node \\"${nodeName}\\" from kubeconfig:`,
    );
    site.api.put(nodeObject());
    await daemon.ready();
    expect(daemon.log()).toContain('localDetector="source in 10.180.0.0/24"');
  });
});

const kubeconfigPath = "/etc/turnout/kubeconfig.conf";

/** The block of the page that follows this marker. */
function shown(name: string): string {
  const [, block] = text("docs/operations.md").split(`<!-- log: ${name} -->`);
  return /```text\n([\s\S]*?)```/.exec(block ?? "")?.[1] ?? "";
}

/** Lines whose order is not fixed are sorted; times, process ids, paths, versions, addresses and figures are placeholders. */
function normalized(log: string): string[] {
  const lines = log.split("\n").filter((line) => line !== "");
  return lines.map((line) => withoutFacts(line)).sort();
}

function withoutFacts(line: string): string {
  return line
    .replace(/^([IE])\d{4} [\d:.]+ +\d+ /, "$1 ")
    .replace(/duration="[^"]*"/, "duration=…")
    .replace(/(operations|from|services|servicePorts|endpoints)=\d+/g, "$1=…")
    .replace(/version="[^"]*"/, "version=…")
    .replace(/"(kubeconfig:)?[^" ]*\/[^"]*\.(json|conf)"/g, '"…"')
    .replace(/(set in|kubeconfig:)\s*[^" ]+/g, "$1 …")
    .replace(/Node \\"[^"\\]*\\"/g, "Node …")
    .replace(/node="[^"]*"/g, "node=…")
    .replace(/(addresses|podCIDRs|nodePortAddresses)=\[[^\]]*\]/g, "$1=[…]")
    .replace(/(ipv4|ipv6|nodeIP)="[^"]*"/g, "$1=…");
}
