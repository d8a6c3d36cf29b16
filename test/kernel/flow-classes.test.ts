// turnout flows and turnout doctor flows with real packets: every class is found, and only what is named is deleted.
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { places } from "../places.ts";
import { type Conversation, openConversation } from "./conversation.ts";
import { type FlowSite, openFlowSite, type SiteService } from "./flow-site.ts";
import { close, connect, domainOf, receive, SOCK_STREAM, type SystemError, send, socket } from "./libc.ts";
import { reasonToSkip } from "./netns.ts";
import { senderAt } from "./probe.ts";

const [local, remote, other] = ["10.180.0.2", "10.180.1.1", "10.180.1.2"] as const;

const web: SiteService = {
  name: "shop/web",
  clusterIP: "172.30.0.10",
  port: 80,
  nodePort: 30_080,
  endpoints: [remote],
};
const dns: SiteService = {
  name: "kube-system/dns",
  protocol: "UDP",
  clusterIP: "172.30.0.2",
  port: 53,
  endpoints: [remote],
};

describe.skipIf(reasonToSkip() !== null)("flows of a running daemon", () => {
  let site: FlowSite;
  let open: Conversation[] = [];

  beforeAll(async () => {
    site = await openFlowSite("fl");
    await site.update([web, dns]);
    await site.start();
  });
  afterAll(() => site?.close());
  beforeEach(async () => {
    await site.update([web, dns]);
    site.world.forgetFlows();
  });
  afterEach(() => {
    for (const conversation of open) conversation.close();
    open = [];
  });

  /** Opens a connection or flow from a place, and exchanges something. */
  async function talk(place: "L1" | "X", protocol: "tcp" | "udp", address: string, port: number) {
    const conversation = openConversation(senderAt(site.world, places[place]), protocol, { address, port });
    open.push(conversation);
    return { conversation, reply: await conversation.talk() };
  }

  const json = async (...argv: string[]) => {
    const { status, stdout, stderr } = await site.turnout(...argv, "-o", "json");
    if (status === 1) throw new Error(stderr);
    return { status, stderr, answer: JSON.parse(stdout) };
  };
  const classes = async (...argv: string[]): Promise<Record<string, number>> => {
    const { answer } = await json("doctor", "flows", "--wait=0", ...argv);
    return Object.fromEntries(
      answer.classes.flatMap((each: { class: string; count: number }) =>
        each.count === 0 ? [] : [[each.class, each.count]],
      ),
    );
  };

  it("lists flows with their Service, endpoint and share, and only flows of Services", async () => {
    await talk("L1", "tcp", "172.30.0.10", 80);
    await talk("X", "tcp", "192.168.0.2", 30_080);
    await talk("L1", "udp", "172.30.0.2", 53);
    await talk("L1", "tcp", local, 8080);
    const { status, answer } = await json("flows");
    expect(status).toBe(0);
    expect(
      answer.flows.map((flow: Record<string, unknown>) => [
        flow.service,
        flow.frontend,
        flow.state,
        flow.endpoint,
        flow.node,
        (flow.today as { kind: string; among: number }).kind,
      ]),
    ).toEqual([
      ["kube-system/dns", "clusterIP", "replied", "10.180.1.1:8080", "node-b", "eligible"],
      ["shop/web", "clusterIP", "ESTABLISHED", "10.180.1.1:8080", "node-b", "eligible"],
      ["shop/web", "nodePort", "ESTABLISHED", "10.180.1.1:8080", "node-b", "eligible"],
    ]);
    expect(answer.examined).toBe(site.conntrack().length);
    expect((await json("flows", "--all")).answer.matched).toBe(site.conntrack().length);
  });

  it("finds nothing wrong with flows of other software, nor with those in use", async () => {
    foreignRule(site);
    expect((await talk("X", "tcp", "192.168.0.2", 8443)).reply).toBe("10.180.0.1:8080");
    await talk("L1", "tcp", "172.30.0.10", 80);
    await talk("L1", "udp", "172.30.0.2", 53);
    expect(await classes()).toEqual({});
    expect((await site.turnout("doctor", "flows", "--wait=0")).status).toBe(0);
  });

  it("endpoint-gone: an established connection is found, and kept unless its endpoint is named", async () => {
    const { conversation, reply } = await talk("L1", "tcp", "172.30.0.10", 80);
    expect(reply).toBe("10.180.1.1:8080");
    const kept = await talk("X", "tcp", "192.168.0.2", 8080);
    expect(kept.reply).toBe("192.168.0.2:8080");
    await site.update([{ ...web, endpoints: [other] }, dns]);
    expect(await classes()).toEqual({ "endpoint-gone": 1 });
    const before = site.conntrack();
    const { answer, status } = await json("doctor", "flows", "--wait=0", "--delete=endpoint-gone");
    expect([status, answer.deletion]).toEqual([3, { named: ["endpoint-gone"], deleted: 0, kept: 1 }]);
    expect(site.conntrack()).toEqual(before);
    expect(await conversation.talk()).toBe("10.180.1.1:8080");
    const refused = await site.turnout("doctor", "flows", "--wait=0", "--reset-tcp=10.180.1.2:8080");
    expect(refused).toMatchObject({
      status: 1,
      stderr: expect.stringContaining("it is an endpoint of shop/web"),
    });
    const reset = await json("doctor", "flows", "--wait=0", "--reset-tcp=10.180.1.1:8080");
    expect([reset.status, reset.answer.deletion.deleted]).toEqual([0, 1]);
    expect(site.conntrack()).toHaveLength(before.length - 1);
    // The next packet of the client is translated to the remaining endpoint, which does not know the connection.
    expect(await conversation.talk()).toBe("reject");
    expect(await kept.conversation.talk()).toBe("192.168.0.2:8080");
  });

  it.each([
    ["is reset when another endpoint is ready", [other], 1, "ECONNRESET"],
    ["is not reset when no endpoint is left", [], 1, "open"],
    ["is not reset when nf_conntrack_tcp_loose is 0", [other], 0, "open"],
  ])("a client whose entry is deleted %s", async (_, endpoints, loose, outcome) => {
    site.world.node.sysctl({ "net.netfilter.nf_conntrack_tcp_loose": loose });
    const client = await plainClient(site, "172.30.0.10", 80);
    await site.update([{ ...web, endpoints }, dns]);
    const reset = await json("doctor", "flows", "--wait=0", "--reset-tcp=10.180.1.1:8080");
    expect(reset.answer.deletion.deleted).toBe(1);
    send(client, Buffer.from("hello"));
    let state = "open";
    for (const end = Date.now() + 1500; state === "open" && Date.now() < end; await sleep(20))
      state = stateOf(client);
    close(client);
    site.world.node.sysctl({ "net.netfilter.nf_conntrack_tcp_loose": 1 });
    expect(state).toBe(outcome);
  });

  it("service-deleted: a connection to a Service that is gone", async () => {
    const old: SiteService = { name: "shop/old", clusterIP: "172.30.0.20", port: 80, endpoints: [remote] };
    await site.update([web, dns, old]);
    await talk("L1", "tcp", "172.30.0.20", 80);
    await site.update([web, dns]);
    expect(await classes()).toEqual({ "service-deleted": 1 });
    const { stdout } = await site.turnout("doctor", "flows", "--wait=0");
    expect(stdout).toContain("shop/old was removed from this address");
  });

  it("service-deleted: a node port and an external IP that a Service had, and not a hostPort at the same place", async () => {
    const old: SiteService = {
      name: "shop/old",
      clusterIP: "172.30.0.20",
      port: 80,
      nodePort: 30099,
      externalIPs: ["198.51.100.9"],
      endpoints: [remote],
    };
    await site.update([web, dns, old]);
    await talk("X", "tcp", "192.168.0.2", 30099);
    await talk("L1", "tcp", "198.51.100.9", 80);
    await site.update([web, dns]);
    expect(await classes()).toEqual({ "service-deleted": 2 });
    site.world.node.run(
      "nft",
      "add table ip portmap; add chain ip portmap pre { type nat hook prerouting priority -101; }; add rule ip portmap pre ip daddr 192.168.0.2 tcp dport 30099 dnat to 10.180.0.1:8080",
    );
    try {
      expect((await talk("X", "tcp", "192.168.0.2", 30099)).reply).toBe("10.180.0.1:8080");
      const { answer } = await json("doctor", "flows", "--wait=0");
      expect(answer.classes[1]).toMatchObject({ class: "service-deleted", count: 2 });
      expect(answer.classes[1].examples.map(({ because }: { because: string }) => because)).toEqual([
        "shop/old was removed from this address",
        "shop/old was removed from this address",
      ]);
    } finally {
      site.world.node.run("nft", "delete table ip portmap");
    }
  });

  it("not-eligible: draining endpoints, and policy Local", async () => {
    await talk("L1", "tcp", "172.30.0.10", 80);
    await talk("L1", "udp", "172.30.0.2", 53);
    await site.update([
      { ...web, endpoints: [`${remote}:draining`, other] },
      { ...dns, internalPolicy: "Local", endpoints: [remote, local] },
    ]);
    const { answer } = await json("doctor", "flows", "--wait=0");
    expect(answer.classes[2]).toMatchObject({
      class: "not-eligible",
      count: 2,
      established: 1,
      exclusions: { draining: 1, policy: 1 },
    });
    const { stdout } = await site.turnout("flows", "kube-system/dns", "-o", "wide");
    expect(stdout).toContain("excluded: internalTrafficPolicy Local: the endpoint is on node-b");
    const before = site.conntrack();
    expect(
      (await json("doctor", "flows", "--wait=0", "--delete=not-eligible")).answer.deletion,
    ).toMatchObject({
      deleted: 1,
      kept: 1,
    });
    expect(before.filter((line) => !site.conntrack().includes(line))).toEqual([
      expect.stringMatching(/^udp .*dst=172\.30\.0\.2 /),
    ]);
  });

  it("untranslated: a connection attempt from before the Service", async () => {
    expect((await talk("L1", "tcp", "198.51.100.7", 80)).reply).toBe("reject");
    expect(await classes()).toEqual({});
    await site.update([{ ...web, externalIPs: ["198.51.100.7"] }, dns]);
    expect(await classes()).toEqual({ untranslated: 1 });
    expect((await json("doctor", "flows", "--wait=0", "--delete=untranslated")).answer.deletion.deleted).toBe(
      1,
    );
    expect(await classes()).toEqual({});
  });

  it("unreplied: a client that sends again and again, found by two readings; a single question is not", async () => {
    // Nothing listens at this port, and the pod drops what arrives there.
    const silent: SiteService = {
      ...dns,
      name: "kube-system/silent",
      clusterIP: "172.30.0.3",
      targetPort: 9999,
    };
    await site.update([web, dns, silent]);
    site.world.at.R1.run(
      "nft",
      "add table ip quiet; add chain ip quiet input { type filter hook input priority 0; }; add rule ip quiet input udp dport 9999 drop",
    );
    const { conversation } = await talk("L1", "udp", "172.30.0.3", 53);
    await talk("L1", "udp", "172.30.0.3", 53);
    const timer = setInterval(() => void conversation.talk(), 200);
    try {
      const { status, answer } = await json("doctor", "flows", "--wait=3");
      const found = answer.classes[4];
      expect([status, found.class, found.count]).toEqual([3, "unreplied", 1]);
      expect(found.examples[0].because).toBe("the client sent again within 3 s, and nothing was answered");
      const removed = await json("doctor", "flows", "--wait=3", "--delete=unreplied");
      expect(removed.answer.deletion.deleted).toBe(1);
    } finally {
      clearInterval(timer);
      site.world.at.R1.run("nft", "delete table ip quiet");
    }
  });
});

/** A connection of an ordinary program, which ICMP errors do not end once it is established. */
async function plainClient({ world }: FlowSite, address: string, port: number): Promise<number> {
  const fd = world.at.L1.inside(() => socket(domainOf(address), SOCK_STREAM, 0));
  connect(fd, { address, port });
  await expect.poll(() => receive(fd)?.data.length ?? 0).toBeGreaterThan(0);
  return fd;
}

/** `open`, or the error that a program sees. */
function stateOf(fd: number): string {
  try {
    receive(fd);
    return "open";
  } catch (error) {
    return (error as SystemError).code;
  }
}

/** A hostPort as CNI plugins make it: the node's address, translated to a pod. */
function foreignRule(site: FlowSite): void {
  site.world.node.run(
    "nft",
    "add table ip portmap; add chain ip portmap pre { type nat hook prerouting priority -101; }; add rule ip portmap pre ip daddr 192.168.0.2 tcp dport 8443 dnat to 10.180.0.1:8080",
  );
}
