// The iptables mode at work on a real kernel: it notices, repairs, survives, and sets aside what is refused.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Start, starter } from "../../src/host/iptables/command.ts";
import { ensureCounter, readCounter } from "../../src/host/iptables/counters.ts";
import type { RestoreFailed } from "../../src/host/iptables/refusal.ts";
import type { Clock } from "../../src/model/clock.ts";
import { modes } from "../../src/modes/index.ts";
import { openIptables } from "../../src/modes/iptables/host/driver.ts";
import type { Routes } from "../../src/routing/routes.ts";
import { dns, front, local, remote, web } from "../support/front-and-web.ts";
import { manualClock } from "../support/manual-clock.ts";
import { ipv4Settings, ipv6Settings, routed, servicePort } from "../support/routed.ts";
import { createNamespace, isRoot, type Namespace } from "./netns.ts";

describe.runIf(isRoot)("the iptables driver", () => {
  let here: Namespace;
  beforeEach(() => {
    here = createNamespace();
  });
  afterEach(() => here.remove());
  const never = new AbortController().signal;
  const usual = () => ({ clock: manualClock(), canaryPeriodMs: () => 30_000, netns: here.path });
  const opened = (parts: { readonly clock?: Clock; readonly start?: Start } = {}) =>
    openIptables({ family: "ipv4", ...usual(), ...parts });

  it("10/55 10/51 notices a flush, repairs everything, and is quiet about its own writes", async () => {
    const clock = manualClock();
    const driver = await opened({ clock });
    const stop = new AbortController();
    const alarms: string[] = [];
    await driver.watch((what) => alarms.push(what), stop.signal);
    const first = routed([web, front]);
    const record = await driver.sync(first, never);
    expect(record.readBack).toBe(true);
    expect(driver.report().rules.map(({ held }) => held)).toEqual(
      driver.report().rules.map(({ written }) => written),
    );
    expect(driver.report().rules.map(({ table, held }) => [table, held])).toEqual(
      ["filter", "nat"].map((table) => [
        table,
        here
          .run("iptables-save", "-t", table)
          .split("\n")
          .filter((line) => line.startsWith("-A KUBE-")).length,
      ]),
    );
    const before = here.run("iptables-save").replaceAll(/ \[\d+:\d+\]|^#.*$/gm, "");
    await driver.sync(routed([web, front, dns], ipv4Settings, first), never);
    await driver.sync(routed([web, front], ipv4Settings, routed([web, front, dns])), never);
    await settle();
    expect(alarms).toEqual([]);

    here.run("sh", "-c", "for t in mangle nat filter; do iptables -t $t -F; iptables -t $t -X; done");
    await expect.poll(() => alarms.length).toBeGreaterThan(0);
    const { differences, repair } = await driver.verify(never);
    expect(differences).toBeGreaterThan(0);
    expect(repair).toMatchObject({ operations: differences });
    expect(repair!.rules).toEqual(driver.report().rules.map((each) => ({ ...each, written: each.held })));
    const lines = (text: string) => text.split("\n").sort();
    expect(lines(here.run("iptables-save").replaceAll(/ \[\d+:\d+\]|^#.*$/gm, ""))).toEqual(lines(before));
    expect(await driver.verify(never)).toEqual({ differences: 0 });
    stop.abort();
    await driver.close();
  });

  it("minds changes of what is ours, and nothing else", async () => {
    const driver = await opened();
    const stop = new AbortController();
    const alarms: string[] = [];
    await driver.watch((what) => alarms.push(what), stop.signal);
    await driver.sync(routed([web]), never);
    for (const command of [
      "-t nat -N FOREIGN",
      "-t nat -A FOREIGN -p tcp -j RETURN",
      "-t nat -F FOREIGN",
      "-t nat -X FOREIGN",
      "-I FORWARD -s 10.1.2.3 -j DROP",
      "-t mangle -N KUBE-KUBELET-CANARY",
    ])
      here.run("iptables", ...command.split(" "));
    await settle();
    expect(alarms).toEqual([]);
    here.run("iptables", "-t", "nat", "-D", "POSTROUTING", "1");
    await expect.poll(() => alarms).toHaveLength(1);
    expect((await driver.verify(never)).differences).toBe(1);
    here.run("iptables", "-t", "nat", "-A", "KUBE-SERVICES", "-j", "RETURN");
    await expect.poll(() => alarms).toHaveLength(2);
    expect(alarms[1]).toContain("KUBE-SERVICES in table nat");
    stop.abort();
    await driver.close();
  });

  it.each(["legacy", "nft"])("works on the back end that the kubelet works on: %s", async (kubelet) => {
    here.run(`iptables-${kubelet}`, "-w", "-t", "mangle", "-N", "KUBE-KUBELET-CANARY");
    const other = kubelet === "legacy" ? "nft" : "legacy";
    // An earlier proxy on the other back end counts less.
    here.run(`iptables-${other}`, "-w", "-t", "mangle", "-N", "KUBE-PROXY-CANARY");
    const driver = await opened();
    await driver.sync(routed([web]), never);
    expect(here.run(`iptables-${kubelet}-save`)).toContain("shop/web:http cluster IP");
    expect(here.run(`iptables-${other}-save`)).not.toContain("KUBE-SERVICES");
    await driver.close();
  });

  it("10/48 02/29 reads the host after a failure, and then succeeds", async () => {
    const onMachine = starter({ netns: here.path });
    let fail: number | null = null;
    const ran: string[] = [];
    const start: Start = (program, args, input, signal) => {
      ran.push(program);
      if (fail === null || program !== "iptables-restore") return onMachine(program, args, input, signal);
      const finished = Promise.resolve({ code: fail, stdout: "", stderr: "holding the xtables lock" });
      return { pid: undefined, finished };
    };
    const driver = await opened({ start });
    const first = routed([web]);
    await driver.sync(first, never);
    const second = routed([web, front], ipv4Settings, first);
    fail = 4;
    await expect(driver.sync(second, never)).rejects.toThrow("xtables lock");
    fail = null;
    ran.length = 0;
    const again = await driver.sync({ ...second, changed: new Set() }, never);
    expect(again.readBack).toBe(true);
    expect(ran).toEqual(["iptables-save", "iptables-restore"]);
    expect(await driver.verify(never)).toEqual({ differences: 0 });
  });

  it("detects a flush between its reading and its writing", async () => {
    const onMachine = starter({ netns: here.path });
    let fails = false;
    let flushed: string | null = null;
    const start: Start = (program, args, input, signal) => {
      if (fails && program === "iptables-restore") return onMachine("false", [], "", signal);
      const running = onMachine(program, args, input, signal);
      if (flushed === null || program !== "iptables-save") return running;
      const finished = running.finished.then((listing) => {
        here.feed(`*${flushed}\nCOMMIT\n`, "iptables-restore");
        return listing;
      });
      return { ...running, finished };
    };
    const driver = await opened({ start });
    const stop = new AbortController();
    const alarms: string[] = [];
    await driver.watch((what) => alarms.push(what), stop.signal);
    const first = routed([web, front]);
    await driver.sync(first, never);
    // From here on the state of the host is unknown.
    fails = true;
    const second = routed([web, front, dns], ipv4Settings, first);
    await expect(driver.sync(second, never)).rejects.toThrow("exited with 1");
    [fails, flushed] = [false, "filter"];
    await driver.sync({ ...second, changed: new Set() }, never);
    await expect.poll(() => alarms).not.toEqual([]);
    flushed = null;
    expect((await driver.verify(never)).differences).toBeGreaterThan(0);
    expect(here.run("iptables-save", "-t", "filter")).toContain("KUBE-FORWARD");
    stop.abort();
    await driver.close();
  });

  it.each(["iptables-save", "iptables-restore"])(
    "detects a flush during the first load, directly after %s, over the rules of an earlier daemon",
    async (program) => {
      const earlier = await opened();
      await earlier.sync(routed([web, front]), never);
      await earlier.close();
      const onMachine = starter({ netns: here.path });
      const start: Start = (name, args, input, signal) => {
        const running = onMachine(name, args, input, signal);
        if (name !== program) return running;
        const flushed = running.finished.then((end) => {
          here.feed("*nat\nCOMMIT\n", "iptables-restore");
          return end;
        });
        return { ...running, finished: flushed };
      };
      const driver = await opened({ start });
      const stop = new AbortController();
      const alarms: string[] = [];
      await driver.watch((what) => alarms.push(what), stop.signal);
      await driver.sync(routed([web, front, dns]), never);
      expect(alarms).toEqual(['"iptables-restor" changed nf_tables during the first load']);
      stop.abort();
      await driver.close();
    },
  );

  it("takes the first loads of both families for its own", async () => {
    const drivers = [await opened(), await openIptables({ ...usual(), family: "ipv6" })];
    const stop = new AbortController();
    const alarms: string[] = [];
    for (const driver of drivers) await driver.watch((what) => alarms.push(what), stop.signal);
    await Promise.all([
      drivers[0]!.sync(routed([web, front]), never),
      drivers[1]!.sync(routed([], ipv6Settings), never),
    ]);
    expect(alarms).toEqual([]);
    stop.abort();
    for (const driver of drivers) await driver.close();
  });

  it("succeeds after its restore was killed halfway, at any moment", async () => {
    const many = Array.from({ length: 600 }, (_, i) =>
      servicePort(`shop/s${i}`, {
        clusterIP: `172.30.${1 + (i >> 8)}.${i & 255}`,
        endpoints: [local, remote],
      }),
    );
    const onMachine = starter({ netns: here.path });
    let killAfterMs: number | null = null;
    const start: Start = (program, args, input, signal) => {
      const running = onMachine(program, args, input, signal);
      if (killAfterMs !== null && program === "iptables-restore") {
        const timer = setTimeout(() => process.kill(running.pid!, "SIGKILL"), killAfterMs);
        const ended = () => clearTimeout(timer);
        void running.finished.then(ended, ended);
      }
      return running;
    };
    const driver = await opened({ start });
    let routes: Routes | null = null;
    for (const ms of [1, 20, 50, 90]) {
      routes = routed(ms % 20 === 0 ? many : many.slice(300), ipv4Settings, routes);
      killAfterMs = ms;
      const killed = await driver.sync(routes, never).then(
        () => "done",
        (error: Error) => error.message,
      );
      expect(killed).toMatch(/^done$|was killed/);
      killAfterMs = null;
      routes = routed(many, ipv4Settings, routes);
      await driver.sync(routes, never);
      expect(await driver.verify(never)).toEqual({ differences: 0 });
    }
  });

  it("reports that the lock is held, and syncs once it is free", async () => {
    const lock = join(mkdtempSync(join(tmpdir(), "turnout-lock-")), "lock");
    const onMachine = starter({ netns: here.path });
    const start: Start = (program, args, input, signal) =>
      onMachine(
        "env",
        [`XTABLES_LOCKFILE=${lock}`, program.replace(/^iptables/, "iptables-legacy"), ...args],
        input,
        signal,
      );
    const driver = await opened({ start });
    const holding = ["--no-fork", lock, "sh", "-c", "echo held; exec sleep 240"];
    const holder = spawn("flock", holding, { stdio: ["ignore", "pipe", "ignore"] });
    await once(holder.stdout, "data");
    const routes = routed([web]);
    const failure = (await driver.sync(routes, never).catch((error: unknown) => error)) as RestoreFailed;
    expect(failure.kind).toBe("unavailable");
    expect(failure.message).toContain("holding the xtables lock");
    expect(driver.report().rules.every(({ held, written }) => held > 0 && written === held)).toBe(true);
    const gone = once(holder, "exit");
    holder.kill();
    await gone;
    await driver.sync({ ...routes, changed: new Set() }, never);
    expect(await driver.verify(never)).toEqual({ differences: 0 });
    rmSync(dirname(lock), { recursive: true });
  });

  it("sets a refused Service aside, and keeps the others working", async () => {
    const driver = await opened();
    const bad = servicePort("shop/bad", {
      clusterIP: "172.30.0.66",
      affinity: { seconds: 5e9 },
      endpoints: [local],
    });
    const { refused } = await driver.sync(routed([web, bad, dns]), never);
    expect(refused.map(({ object }) => object)).toEqual([`Service ${bad.service}`]);
    expect(here.run("iptables-save")).toContain("shop/web:http cluster IP");
    expect(await driver.verify(never)).toEqual({ differences: 0 });
    await driver.sync(routed([web, dns], ipv4Settings, routed([web, bad, dns])), never);
    expect(await driver.verify(never)).toEqual({ differences: 0 });
  });

  it("10/54 leaves nothing when another mode takes over, and takes away what that one left", async () => {
    const driver = await opened();
    await driver.sync(routed([web, front]), never);
    here.feed(
      "add table ip kube-proxy\nadd chain ip kube-proxy services\nadd table ip6 kube-proxy\n",
      "nft",
      "-f",
      "-",
    );
    await modes.iptables.cleanup({ netns: here.path, keep: null });
    expect(here.run("iptables-save")).not.toMatch(/KUBE-(SVC|SERVICES|PROXY)/);
    expect(here.run("nft", "list", "tables")).toContain("table ip kube-proxy");
    await modes.nftables.cleanup({ netns: here.path, keep: null });
    expect(here.run("nft", "list", "tables")).not.toContain("kube-proxy");
    await modes.iptables.cleanup({ netns: here.path, keep: null });
  });

  it("10/18 makes its packet counters where the kernel has them", async () => {
    expect(await ensureCounter("localhost_nps_accepted_pkts", { netns: here.path })).toBe(true);
    expect(await ensureCounter("localhost_nps_accepted_pkts", { netns: here.path })).toBe(true);
    expect(await readCounter("localhost_nps_accepted_pkts", { netns: here.path })).toBe(0n);
    expect(await readCounter("no_such_counter", { netns: here.path })).toBeNull();
  });
});

/** Lets events arrive that should not come. */
function settle(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 200));
}
