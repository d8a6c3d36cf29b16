// The daemon on files in a network namespace: it starts without waiting, and survives how people replace files.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type FilesDaemon, startLine, untilServed } from "./files-run.ts";
import { createNamespace, type Namespace, reasonToSkip } from "./netns.ts";

const shop = join(import.meta.dirname, "..", "..", "examples", "shop", "shop.yaml");
const nodeOf = (name: string) =>
  `---\nkind: Node\napiVersion: v1\nmetadata: {name: ${name}}\nspec: {podCIDRs: [10.9.0.0/24]}\nstatus: {addresses: [{type: InternalIP, address: 192.168.0.9}]}\n`;

describe.skipIf(reasonToSkip() !== null)("turnout run --source=files:", () => {
  let netns: Namespace;
  let folder: string;
  let daemon: FilesDaemon | null = null;

  beforeEach(() => {
    netns = createNamespace("files");
    netns.ip("link set lo up");
    folder = mkdtempSync(join(tmpdir(), "turnout-files-daemon-"));
  });
  afterEach(async () => {
    await daemon?.stop();
    daemon = null;
    netns.remove();
    rmSync(folder, { recursive: true });
  });

  it("user/1: serves in a network namespace, without flags for conntrack, and warns about the limit", async () => {
    daemon = startLine(
      netns,
      "bin/turnout run --source=files:examples/shop --hostname-override=node-a --mode=nftables",
    );
    await untilServed(netns, daemon, "172.30.0.10");
    const limits = daemon.log().match(/^.*limit on tracked connections.*$/gm) ?? [];
    expect(limits).toEqual([expect.stringContaining("--conntrack-max-per-core=0 and --conntrack-min=0")]);
    expect(await daemon.stop()).toBe(0);
  });

  it("user/1: one Node in the files is this node", async () => {
    writeFileSync(join(folder, "shop.yaml"), withoutNodes());
    writeFileSync(join(folder, "node.yaml"), nodeOf("only"));
    daemon = startLine(netns, `bin/turnout run --source=files:${folder} --mode=nftables`);
    await untilServed(netns, daemon, "172.30.0.10");
    expect(daemon.log()).toContain('"Using the only Node in the files" node="only"');
  });

  it.each([
    ["", "the files define several Nodes; set --hostname-override to one, two"],
    ["--hostname-override=three", 'no Node \\"three\\" in the files; set --hostname-override to one, two'],
  ])("user/1: several Nodes, run with %j: exits and lists them, without waiting", async (flag, message) => {
    writeFileSync(join(folder, "nodes.yaml"), nodeOf("one") + nodeOf("two"));
    daemon = startLine(netns, `bin/turnout run --source=files:${folder} --mode=nftables ${flag}`);
    await expect.poll(() => daemon!.code(), { timeout: 10_000 }).toBe(1);
    expect(daemon.log()).toContain(message);
  });

  it("user/1: without a Node in the files it serves immediately", async () => {
    writeFileSync(join(folder, "shop.yaml"), withoutNodes());
    daemon = startLine(netns, `bin/turnout run --source=files:${folder} --mode=nftables`);
    await untilServed(netns, daemon, "172.30.0.10");
    expect(daemon.log()).toContain("it does not exist in the cluster");
  });

  it("user/2: rm and cp, and mv aside and cp, replace the file of a running daemon", async () => {
    const file = join(folder, "all.yaml");
    writeFileSync(file, withoutNodes() + nodeOf("node-a"));
    daemon = startLine(netns, `bin/turnout run --source=files:${folder} --mode=nftables`);
    await untilServed(netns, daemon, "172.30.0.10");
    const next = (address: string) => {
      const path = join(folder, "next");
      writeFileSync(path, (withoutNodes() + nodeOf("node-a")).replaceAll("172.30.0.10", address));
      return path;
    };
    execFileSync("sh", ["-c", `rm ${file} && sleep 0.2 && cp ${next("172.30.0.110")} ${file}`]);
    await untilServed(netns, daemon, "172.30.0.110");
    execFileSync("sh", ["-c", `mv ${file} ${file}.bak && sleep 0.2 && cp ${next("172.30.0.111")} ${file}`]);
    await untilServed(netns, daemon, "172.30.0.111");
    rmSync(file);
    await expect.poll(() => daemon!.log(), { timeout: 10_000 }).toContain("is in none of the files any more");
    expect(daemon.code()).toBeNull();
  });
});

function withoutNodes(): string {
  const documents = readFileSync(shop, "utf8").split(/^---$/m);
  return documents.filter((text) => !/^kind: Node$/m.test(text)).join("---");
}
