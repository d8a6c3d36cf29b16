// Many faults in a short time: the daemon runs through the whole fault schedule repeatedly while the cluster changes.
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { ClusterChanges } from "./cluster-changes.ts";
import { FaultSchedule } from "./fault-schedule.ts";
import type { Namespace } from "./netns.ts";
import { reasonNotToShift, shiftedClock } from "./shifted-clock.ts";
import { type Daemon, eventually, nodeObject, openSite, reasonNotToRun, type Site } from "./site.ts";

const reason = reasonNotToRun();
const seconds = Number(process.env.TURNOUT_SOAK_SECONDS ?? 12);
/** Faults last this long; then the daemon must recover within a few of its longest pauses. */
const spellMs = Math.min(45, seconds) * 1000;
const timeoutMs = 240_000;

type Rules = {
  /** Everything in the kernel that must be the same in the end, whatever way led there. */
  readonly list: (netns: Namespace) => readonly string[];
  readonly flush: (netns: Namespace) => void;
};

const tools = ["iptables", "ip6tables"];
/** A table is emptied in one step: the daemon may repair at any moment. */
const emptied = "*mangle\nCOMMIT\n*nat\nCOMMIT\n*filter\nCOMMIT\n";

/** A new mode is a line here. */
const modes: Readonly<Record<string, Rules>> = {
  nftables: {
    // Elements are listed in no particular order.
    list: (netns) =>
      netns
        .run("nft", "list", "ruleset")
        .split(/[\s,]+/)
        .sort(),
    flush: (netns) => void netns.run("nft", "flush", "ruleset"),
  },
  iptables: {
    list: (netns) => tools.flatMap((tool) => tablesOf(netns.run(`${tool}-save`))),
    flush: (netns) => {
      for (const tool of tools) netns.feed(emptied, `${tool}-restore`);
    },
  },
};

/** Without counters; the order of Services in the chains that they share is free. */
function tablesOf(listing: string): readonly string[] {
  const lines = listing
    .split("\n")
    .filter((line) => !line.startsWith("#"))
    .map((line) => line.replace(/ \[\d+:\d+\]$/, ""));
  const isShared = (line: string) => /^-A KUBE-(SERVICES|EXTERNAL-SERVICES|NODEPORTS) /.test(line);
  return [...lines.filter((line) => !isShared(line)), ...lines.filter(isShared).sort()];
}

describe.each(Object.entries(modes))("mode %s", (mode, rules) => {
  it(`${seconds} s of faults: it lives on, stays small, and the kernel ends up right`, {
    timeout: (seconds + 300) * 1000 + 2 * timeoutMs,
  }, async ({ skip }) => {
    if (reason !== null) return skip(reason);
    const site = await openSite();
    try {
      await site.openApi();
      site.api.put(nodeObject());
      const clock = reasonNotToShift() === null ? shiftedClock(site.folder) : null;
      const daemon = site.start({ config: { mode }, args: ["-v=0"], env: clock?.env ?? {} });
      await daemon.ready();
      const flush = () => rules.flush(site.netns);
      const hours = new FaultSchedule({ site, daemon, clock, flush });
      const cluster = new ClusterChanges(site.api);
      const sizes: Size[] = [];
      const waits: number[] = [];
      for (const end = Date.now() + seconds * 1000; Date.now() < end; ) {
        await spell(hours, cluster, Math.min(end, Date.now() + spellMs));
        waits.push(await recovered(site, cluster, () => rules.list(site.netns)));
        sizes.push(sizeOf(daemon));
        if (seconds > 60) print(progress(mode, hours, sizes, waits));
      }
      print(`${mode}: ${cluster.changes} changes of the cluster; ${hours.report()}`);
      expect(wrongWords(daemon.log())).toEqual([]);
      expect(daemon.running()).toBe(true);
      clock?.set(0);
      expect(await daemon.health()).toMatchObject({ status: 200 });
      expectBounded(sizes);
      await settled(() => rules.list(site.netns));
      const incremental = rules.list(site.netns);
      daemon.kill("SIGKILL");
      await daemon.ended();
      flush();
      const fresh = site.start({ config: { mode } });
      await fresh.ready();
      expect(incremental).toEqual(rules.list(site.netns));
    } finally {
      await site.close();
    }
  });
});

/** The cluster changes all the time, and about every second something goes wrong. */
async function spell(hours: FaultSchedule, cluster: ClusterChanges, end: number): Promise<void> {
  for (let dealAt = Date.now(); Date.now() < end; await sleep(20 + Math.random() * 80)) {
    for (let i = 0; i < 3; i++) cluster.change();
    if (Date.now() < dealAt) continue;
    await hours.deal();
    dealAt = Date.now() + Math.random() * 1000;
  }
}

/** Trouble ends: how long until the kernel shows what the cluster is now, in both families. */
async function recovered(
  site: Site,
  cluster: ClusterChanges,
  list: () => readonly string[],
): Promise<number> {
  site.api.faults.clear();
  // Requests that hang are noticed after minutes: end them.
  site.api.dropConnections();
  const since = Date.now();
  const marks = cluster.mark();
  const isThere = () => {
    const text = list().join(" ");
    return marks.every((mark) => text.includes(mark));
  };
  await eventually(isThere, `the last Service and its endpoint, ${marks.join(", ")}`, timeoutMs);
  return Date.now() - since;
}

type Size = { readonly at: number; readonly mib: number; readonly files: number };

function sizeOf({ pid }: Daemon): Size {
  const [, kib] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return { at: Date.now(), mib: Number(kib) / 1024, files: readdirSync(`/proc/${pid}/fd`).length };
}

function progress(
  mode: string,
  hours: FaultSchedule,
  sizes: readonly Size[],
  waits: readonly number[],
): string {
  const { at, mib, files } = sizes.at(-1)!;
  const minutes = ((at - sizes[0]!.at) / 60_000).toFixed(1);
  return `${mode} ${minutes} min: ${mib.toFixed(0)} MiB, ${files} files, ${hours.hours.toFixed(1)} rounds of faults, recovered after ${waits.at(-1)} ms`;
}

/** Once warm it does not grow: the later half is as small as the earlier one. */
function expectBounded(sizes: readonly Size[]): void {
  const first = sizes[0]!;
  expect(sizes.at(-1)!.mib).toBeLessThan(Math.max(2 * first.mib, first.mib + 100));
  const warm = sizes.filter(({ at }) => at - first.at > 300_000);
  if (warm.length < 6) return;
  const half = Math.floor(warm.length / 2);
  const [early, late] = [warm.slice(0, half), warm.slice(half)];
  expect(median(late.map(({ mib }) => mib))).toBeLessThan(1.15 * median(early.map(({ mib }) => mib)));
  expect(median(late.map(({ files }) => files))).toBeLessThanOrEqual(
    median(early.map(({ files }) => files)) + 2,
  );
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;
}

async function settled(list: () => readonly string[]): Promise<void> {
  for (let last = ""; ; ) {
    const now = list().join(" ");
    if (now === last) return;
    last = now;
    await sleep(1500);
  }
}

function wrongWords(log: string): readonly string[] {
  return log.split("\n").filter((line) => /command failed|unhandled|TypeError|^ +at /i.test(line));
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}
