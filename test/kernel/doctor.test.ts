// `turnout doctor migrate --live` on its own node: its findings, and that it changes nothing.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createNamespace, type Namespace } from "./netns.ts";
import { reasonNotToRun } from "./site.ts";

const reason = reasonNotToRun();
const root = join(import.meta.dirname, "..", "..");

describe("doctor migrate --live", () => {
  let node: Namespace;
  beforeEach(({ skip }) => {
    skip(reason !== null, reason ?? "");
    node = createNamespace();
    node.ip(
      "link set lo up",
      "link add eth0 type veth peer name wire",
      "link set eth0 up",
      "addr add 192.168.0.2/24 dev eth0",
      "addr add 192.168.1.2/24 dev eth0",
    );
  });
  afterEach(() => node?.remove());

  function doctor(from: string, to: string, ...settings: readonly string[]) {
    const args = [`--from=${from}`, `--to=${to}`, `--source=files:${join(root, "examples", "shop")}`];
    const program = [process.execPath, join(root, "dist", "turnout.cjs")];
    const line = [...program, "doctor", "migrate", ...args, "--node=node-a", "--live", "-o", "json"];
    const { status, stdout } = spawnSync("ip", ["netns", "exec", node.name, "env", ...settings, ...line], {
      encoding: "utf8",
    });
    return { code: status, report: JSON.parse(stdout) as Report };
  }

  type Report = {
    readonly packets: readonly { readonly subject: string; readonly kind: string }[];
    readonly thisNode: readonly { readonly kind: string; readonly message: string }[];
  };

  it("sees the addresses and sysctls of the node, and leaves everything as it was", () => {
    node.sysctl({ "net.ipv4.conf.all.route_localnet": 1 });
    const { code, report } = doctor("iptables", "nftables");
    expect(code).toBe(3);
    expect(report.thisNode).toEqual([{ kind: "remark", message: expect.stringContaining("route_localnet") }]);
    expect(report.packets.filter(({ kind }) => kind === "lost").map(({ subject }) => subject)).toEqual([
      "otherAddress",
      "loopback",
    ]);
    expect(node.run("nft", "list", "ruleset")).toBe("");
    expect(node.run("sysctl", "-n", "net.ipv4.conf.all.route_localnet").trim()).toBe("1");
  });

  it("reports when the node cannot run the mode", () => {
    const { code, report } = doctor("nftables", "iptables", "PATH=/nonexistent");
    expect(code).toBe(4);
    expect(report.thisNode).toMatchObject([{ kind: "blocks", message: expect.stringContaining("iptables") }]);
  });
});
