// The history of a real daemon: what was written when, kept across kill -9, and begun again where the file is damaged.
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { explain } from "../../src/cli/commands/explain.ts";
import type { CommandWorld } from "../../src/cli/commands/kube-proxy.ts";
import type { HistoryEntry } from "../../src/history/entry.ts";
import { type HistoryAnswer, readHistory } from "../../src/inspect/history.ts";
import { systemClock } from "../../src/observe/clock.ts";
import { type FilesDaemon, startLine, untilServed } from "./files-run.ts";
import { createNamespace, type Namespace, reasonToSkip } from "./netns.ts";

const shop = readFileSync(join(import.meta.dirname, "..", "..", "examples", "shop", "shop.yaml"), "utf8");

describe.skipIf(reasonToSkip() !== null)("turnout run --history-dir", () => {
  let netns: Namespace;
  let folder: string;
  let daemon: FilesDaemon;
  const socket = () => join(folder, "status.sock");
  const saved = () => join(folder, "saved");

  beforeEach(() => {
    netns = createNamespace("hist");
    netns.ip("link set lo up");
    folder = mkdtempSync(join(tmpdir(), "turnout-history-daemon-"));
    write("10.0.1.1");
  });
  afterEach(async () => {
    await daemon.stop();
    netns.remove();
    rmSync(folder, { recursive: true });
  });

  /** The only endpoint of shop/cart. */
  function write(address: string): void {
    writeFileSync(
      join(folder, "shop.yaml"),
      shop.replace("addresses: [10.0.1.1]", `addresses: [${address}]`),
    );
  }

  async function start(): Promise<void> {
    const flags = `--status-socket=${socket()} --history-dir=${saved()} --hostname-override=node-a --mode=nftables`;
    daemon = startLine(netns, `bin/turnout run --source=files:${join(folder, "shop.yaml")} ${flags}`);
    await untilServed(netns, daemon, "172.30.0.10");
    await expect.poll(async () => (await answer())?.history.beginsAt ?? null).not.toBeNull();
  }

  function answer(): Promise<HistoryAnswer | null> {
    return readHistory(socket(), {}).catch(() => null);
  }

  /** Resolves when the kernel has it, with the time at which it was seen in the history. */
  async function change(address: string): Promise<{ readonly entry: HistoryEntry; readonly seenAt: number }> {
    write(address);
    const latest = async () => (await answer())?.changes.at(-1);
    await expect
      .poll(
        async () => {
          const entry = await latest();
          return JSON.stringify(entry?.changes ?? "").includes(`gained endpoint ${address}:8080`)
            ? entry?.written.ipv4?.failed
            : "";
        },
        { interval: 20 },
      )
      .toBeNull();
    return { entry: (await latest())!, seenAt: Date.now() };
  }

  it("kill -9 loses at most the last second, and every earlier state can be explained", async () => {
    await start();
    const seen = [await change("10.0.1.2")];
    while (Date.now() - seen[0]!.seenAt < 2_500) seen.push(await change(`10.0.1.${seen.length + 2}`));
    expect(netns.run("nft", "list", "ruleset")).toContain(`10.0.1.${seen.length + 1}`);
    for (const { entry } of seen) {
      expect(entry.causes).toMatchObject([{ kind: "EndpointSlice", namespace: "shop", event: "modified" }]);
      expect(entry.written.ipv4!.operations).toBeGreaterThan(0);
      expect(entry.written.ipv4!.latencyMs).toBeLessThan(60_000);
    }
    const killedAt = Date.now();
    process.kill(daemon.pid(), "SIGKILL");
    await expect.poll(() => daemon.code() ?? answer().then((each) => each === null)).toBeTruthy();
    write("10.0.9.9");
    await start();
    await expect.poll(async () => (await answer())?.history.unsaved).toBeNull();
    const { history, changes } = (await answer())!;
    const kept = changes.filter(({ origin }) => origin === "watch").map(({ seq, at }) => [seq, at]);
    const due = seen
      .filter(({ seenAt }) => seenAt <= killedAt - 1000)
      .map(({ entry: { seq, at } }) => [seq, at]);
    expect(due.length).toBeGreaterThan(1);
    expect(kept.slice(0, due.length)).toEqual(due);
    expect(changes.at(-1)).toMatchObject({ origin: "restart", changes: [{ service: "shop/cart" }] });
    expect(history).toMatchObject({ directory: saved(), unsaved: null, dropped: null });
    for (const { entry } of seen.slice(0, due.length))
      expect(await explained(entry.at)).toContain(`10.0.1.${entry.seq + 1}:8080`);
    expect(await explained(Date.now())).toContain("10.0.9.9:8080");
  });

  it("a damaged file is kept aside, and the daemon serves with an empty history", async () => {
    await start();
    await change("10.0.1.2");
    await daemon.stop();
    writeFileSync(join(saved(), "history.log"), "not a history\nat all\n");
    await start();
    // The new file is written under another name first.
    await expect
      .poll(() => readdirSync(saved()).sort())
      .toEqual(["history.log", expect.stringMatching(/^history\.log\.\d{8}T.*Z\.bad$/)]);
    expect(daemon.log()).toContain("Cannot read the saved history; beginning an empty one");
    expect((await answer())!).toMatchObject({ changes: [], history: { dropped: { reason: "unreadable" } } });
    await change("10.0.1.3");
  });

  async function explained(at: number): Promise<string> {
    let out = "";
    const write = (text: string) => {
      out += text;
    };
    const world = { version: version(), environment: {}, clock: systemClock, stdout: write, stderr: write };
    const when = new Date(at).toISOString();
    const argv = ["pod:10.0.1.9", "svc/shop/cart", `--source=daemon:${socket()}`, `--at=${when}`];
    await explain(argv, world as unknown as CommandWorld, new AbortController().signal);
    return out;
  }

  function version(): string {
    const { version } = JSON.parse(
      readFileSync(join(import.meta.dirname, "..", "..", "package.json"), "utf8"),
    );
    return version;
  }
});
