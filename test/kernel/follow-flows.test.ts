// turnout flows --follow: flows start, change state and end; lost events are reported. Bytes and ages where the kernel records them.
import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { places } from "../places.ts";
import { type Conversation, openConversation } from "./conversation.ts";
import { type FlowSite, openFlowSite } from "./flow-site.ts";
import { insertFlows } from "./insert-flows.ts";
import { reasonToSkip } from "./netns.ts";
import { senderAt } from "./probe.ts";

const program = join(import.meta.dirname, "..", "..", "bin", "turnout");
const endpoint = places.R1;

describe.skipIf(reasonToSkip() !== null)("turnout flows --follow", () => {
  let site: FlowSite;
  let children: ChildProcess[] = [];
  let open: Conversation[] = [];

  beforeAll(async () => {
    // iptables mode, since other tests of flows run in nftables mode.
    site = await openFlowSite("ff", "iptables");
    await site.update([{ name: "shop/web", clusterIP: "172.30.0.10", port: 80, endpoints: [endpoint] }]);
    await site.start();
  });
  afterAll(() => site?.close());
  afterEach(() => {
    for (const child of children) child.kill("SIGKILL");
    for (const conversation of open) conversation.close();
    [children, open] = [[], []];
    site.world.node.sysctl({
      "net.netfilter.nf_conntrack_acct": 0,
      "net.netfilter.nf_conntrack_timestamp": 0,
      "net.netfilter.nf_conntrack_events": 2,
    });
    site.world.forgetFlows();
  });

  /** Resolves once the command receives events. */
  async function follow(...argv: string[]) {
    const child = spawn(program, ["flows", "--follow", ...argv, `--source=daemon:${site.socket}`]);
    children.push(child);
    let [out, err] = ["", ""];
    child.stdout.on("data", (some) => (out += String(some)));
    child.stderr.on("data", (some) => (err += String(some)));
    await expect.poll(() => err, { timeout: 20_000 }).toContain("following flows that start from now on");
    const ended = new Promise<number | null>((resolve) => child.once("exit", resolve));
    return { child, ended, out: () => out, err: () => err };
  }

  async function talk(address: string, port: number): Promise<Conversation> {
    const conversation = openConversation(senderAt(site.world, places.L1), "tcp", { address, port });
    open.push(conversation);
    expect(await conversation.talk()).not.toBe("silence");
    return conversation;
  }

  it("prints the states of a connection from start to end, and ends with 0 when interrupted", async () => {
    const { child, ended, out } = await follow("svc/shop/web", "-o", "json");
    await talk("172.30.0.10", 80);
    await talk(places.L2, 8080);
    site.world.forgetFlows();
    const events = () =>
      out()
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line));
    await expect.poll(() => events().at(-1)?.event, { timeout: 10_000 }).toBe("destroy");
    expect(events().map(({ event, state, service, endpoint: to }) => [event, state, service, to])).toEqual([
      ["new", "SYN_SENT", "shop/web", `${endpoint}:8080`],
      ["update", "SYN_RECV", "shop/web", `${endpoint}:8080`],
      ["update", "ESTABLISHED", "shop/web", `${endpoint}:8080`],
      ["destroy", expect.anything(), "shop/web", `${endpoint}:8080`],
    ]);
    child.kill("SIGINT");
    expect(await ended).toBe(0);
  });

  it("prints a line for each event, and reports events that the kernel dropped", async () => {
    const { child, out, err } = await follow("--all");
    await talk("172.30.0.10", 80);
    await expect
      .poll(out, { timeout: 10_000 })
      .toMatch(
        /^\d\d:\d\d:\d\d\.\d{3} NEW {4}tcp 10\.180\.0\.1:\d+ → 172\.30\.0\.10:80 → 10\.180\.1\.1:8080, SYN_SENT, shop\/web, eligible, the only choice$/m,
      );
    child.kill("SIGSTOP");
    await insertFlows(site.world.node, 20_000);
    child.kill("SIGCONT");
    await expect
      .poll(err, { timeout: 20_000 })
      .toMatch(
        /! events were lost from \S+ to \S+: they arrive faster than they are printed; use a SELECTOR\n/,
      );
  });

  it("refuses when the kernel sends no events", async () => {
    site.world.node.sysctl({ "net.netfilter.nf_conntrack_events": 0 });
    expect(await site.turnout("flows", "--follow")).toEqual({
      status: 1,
      stdout: "",
      stderr:
        "turnout flows: cannot follow flows: net.netfilter.nf_conntrack_events is 0; set it to 1 with sysctl\n",
    });
  });

  it("has bytes and ages where the kernel records them, and otherwise the reason", async () => {
    await talk("172.30.0.10", 80);
    const without = await site.turnout("flows");
    expect(without.stdout).toMatch(/ +- +- {2}eligible, the only choice\n$/);
    expect(without.stderr).toBe(
      "! no bytes: nf_conntrack_acct is 0; with 1 the kernel counts flows that start afterwards\n",
    );
    site.world.node.sysctl({
      "net.netfilter.nf_conntrack_acct": 1,
      "net.netfilter.nf_conntrack_timestamp": 1,
    });
    await talk("172.30.0.10", 80);
    const { stdout, stderr } = await site.turnout("flows", "-o", "json");
    expect(stderr).toContain("names of pods are missing: files contain no pods");
    const { flows, accounting, timestamps } = JSON.parse(stdout);
    expect([flows.length, accounting, timestamps]).toEqual([2, true, true]);
    const counted = flows.find((flow: { counters: unknown }) => flow.counters !== null);
    const [, sent, received] =
      site.world.node
        .run("conntrack", "-L", "-p", "tcp")
        .match(/ packets=\d+ bytes=(\d+) src=.* packets=\d+ bytes=(\d+) /) ?? [];
    expect([counted.counters.original.bytes, counted.counters.reply.bytes]).toEqual(
      [sent, received].map(Number),
    );
    expect(counted.ageSeconds).toBeLessThan(60);
    expect((await site.turnout("flows")).stderr).toBe(
      "! no bytes for 1 of them: started before nf_conntrack_acct was set to 1\n",
    );
  });
});
