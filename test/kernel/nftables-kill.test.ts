// kill -9 in the middle of syncs: what did not change is served all the time, and the next start converges.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { build } from "esbuild";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openNftables } from "../../src/modes/nftables/host/driver.ts";
import { places } from "../places.ts";
import { ipv4Settings, routed } from "../support/routed.ts";
import { type ChurnOrder, churned, keptFrontend } from "./churn.ts";
import { reasonToSkip } from "./netns.ts";
import { steadyTraffic } from "./traffic.ts";
import { createWorld, type World } from "./world.ts";

const reason = reasonToSkip();
const kills = Number(process.env.TURNOUT_KILLS ?? 12);
const root = join(import.meta.dirname, "..", "..");

describe("kill -9 at random points of random syncs", () => {
  let world: World;
  let folder: string;
  beforeAll(async () => {
    if (reason !== null) return;
    world = await createWorld();
    folder = mkdtempSync(join(tmpdir(), "turnout-kill-"));
    symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
    await build({
      absWorkingDir: root,
      entryPoints: ["test/kernel/churn-process.ts"],
      outfile: join(folder, "churn-process.cjs"),
      bundle: true,
      platform: "node",
      target: "node26",
      format: "cjs",
      external: ["koffi"],
      logLevel: "silent",
    });
  });
  afterAll(async () => {
    if (reason !== null) return;
    await world.close();
    rmSync(folder, { recursive: true, force: true });
  });

  it(`never interrupts what did not change, in ${kills} kills, and the next start converges`, {
    timeout: 60_000 + kills * 3000,
  }, async ({ skip }) => {
    if (reason !== null) return skip(reason);
    const { signal } = new AbortController();
    const first = await openNftables({ family: "ip", netns: world.node.path });
    await first.sync(routed(churned(0, 0)), signal);
    await first.close();
    const from = [
      { kind: "pod", address: places.L2 },
      { kind: "node", address: places.host },
      { kind: "outside", address: places.X },
    ] as const;
    const traffic = steadyTraffic(
      world,
      from.map((sender) => ({ from: sender, to: keptFrontend })),
    );
    const troubles: string[] = [];
    for (let seed = 1; seed <= kills; seed++) {
      const owned = Math.random() < 0.5;
      troubles.push(...(await killSoon({ netns: world.node.path, seed, owned }, Math.random() * 120)));
    }
    expect(troubles).toEqual([]);
    const last = await openNftables({ family: "ip", netns: world.node.path });
    await last.sync(routed(churned(kills, 99), ipv4Settings), signal);
    expect(await last.verify(signal)).toEqual({ differences: 0 });
    world.node.run("nft", "list", "ruleset");
    await last.close();
    expect(await traffic.stop()).toEqual([]);
    expect(traffic.sent()).toBeGreaterThan(kills * 5);
  });

  /** Starts the process, lets it sync for a while, kills it, and gives what it complained about before. */
  async function killSoon(order: ChurnOrder, afterMs: number): Promise<string[]> {
    const child = spawn(process.execPath, [join(folder, "churn-process.cjs"), JSON.stringify(order)], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    const complaints: string[] = [];
    child.stderr.setEncoding("utf8").on("data", (text: string) => complaints.push(text));
    const gone = once(child, "exit");
    await Promise.race([once(child.stdout, "data"), gone]);
    await sleep(afterMs);
    child.kill("SIGKILL");
    await gone;
    return complaints;
  }
});
