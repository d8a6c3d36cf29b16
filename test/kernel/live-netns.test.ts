// diff --live and explain --live of a daemon in another network namespace: they read the kernel there, or refuse.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type FilesDaemon, startLine, untilServed } from "./files-run.ts";
import { createNamespace, type Namespace, reasonToSkip } from "./netns.ts";

const root = join(import.meta.dirname, "..", "..");
const explained = ["explain", "pod:10.0.1.9", "svc/shop/web:80", "--live"];
const notForUs = ["explain", "pod:10.0.1.9", "192.0.2.1:80", "--live"];

describe.skipIf(reasonToSkip() !== null)("user/3: --live from another network namespace", () => {
  let [its, other]: Namespace[] = [];
  let daemon: FilesDaemon;
  const folder = mkdtempSync(join(tmpdir(), "turnout-live-"));
  const socket = join(folder, "status.sock");

  beforeAll(async () => {
    its = createNamespace("live-its");
    other = createNamespace("live-other");
    its.ip("link set lo up");
    const flags = `--source=files:examples/shop --hostname-override=node-a --status-socket=${socket}`;
    daemon = startLine(its, `bin/turnout run --mode=nftables ${flags}`);
    await untilServed(its, daemon, "172.30.0.10");
  });
  afterAll(async () => {
    await daemon.stop();
    its!.remove();
    other!.remove();
    rmSync(folder, { recursive: true });
  });

  const runTurnout = (
    argv: readonly string[],
    before: readonly string[] = [],
    source = `daemon:${socket}`,
  ) => {
    const command = [
      "ip",
      "netns",
      "exec",
      other!.name,
      ...before,
      "bin/turnout",
      ...argv,
      `--source=${source}`,
    ];
    const { status, stdout, stderr } = spawnSync(command[0]!, command.slice(1), {
      cwd: root,
      encoding: "utf8",
    });
    return { status, stdout, stderr };
  };
  const onFiles = (argv: readonly string[]) =>
    runTurnout([...argv, "--node=node-a"], [], "files:examples/shop");

  it("root reads the kernel of the daemon's namespace", () => {
    expect(runTurnout(["diff", "--live"])).toEqual({
      status: 0,
      stdout: "The kernel holds what it should.\n",
      stderr: "",
    });
    expect(runTurnout(explained)).toMatchObject({
      status: 0,
      stdout: expect.stringContaining("agrees: the kernel handles this packet the same way"),
    });
  });

  it("without the right to enter, it prints the nsenter line", () => {
    const line = runTurnout(["diff", "--live"], ["setpriv", "--bounding-set=-sys_admin"]);
    expect(line).toEqual({
      status: 1,
      stdout: "",
      stderr: expect.stringMatching(
        /^turnout diff: the daemon runs in another network namespace \(net:\[\d+\]\), .*; run: nsenter --(net=\/|target=)\S+ .*turnout …\n$/,
      ),
    });
    expect(line.stderr).not.toContain("missing");
  });

  it("a missing table is one line for each family", () => {
    expect(onFiles(["diff", "--live"])).toMatchObject({
      status: 3,
      stdout: "ipv4: the whole table is missing\nipv6: the whole table is missing\n",
    });
  });

  it("a packet that passes, and no rules in the kernel: they agree", () => {
    expect(onFiles(notForUs)).toMatchObject({
      status: 0,
      stdout: expect.stringContaining("agrees: the kernel handles this packet the same way"),
    });
    expect(onFiles(explained)).toMatchObject({
      status: 3,
      stdout: expect.stringContaining("found:    no rules of Turnout"),
    });
  });
});
