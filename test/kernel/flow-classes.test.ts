// turnout flows and turnout doctor flows with real packets: every class is found in both families, and only what is named is deleted.
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Family, families, familyOf, joinHostPort } from "../../src/model/address.ts";
import { inFamily, places } from "../places.ts";
import { type Conversation, openConversation } from "./conversation.ts";
import { type FlowSite, openFlowSite, type SiteService } from "./flow-site.ts";
import {
  close,
  connect,
  domainOf,
  receive,
  SOCK_STREAM,
  type SystemError,
  send,
  setOption,
  socket,
} from "./libc.ts";
import { reasonToSkip } from "./netns.ts";
import { senderAt } from "./probe.ts";

/** Nothing listens at this port, and pods drop what arrives there. */
const silentPort = 9999;

describe.skipIf(reasonToSkip() !== null)("flows of a running daemon", () => {
  let site: FlowSite;
  let open: Conversation[] = [];

  beforeAll(async () => {
    site = await openFlowSite("fl");
    site.world.at.R1.run(
      "nft",
      `add table inet quiet; add chain inet quiet input { type filter hook input priority 0; }; add rule inet quiet input th dport ${silentPort} drop`,
    );
    // No entry expires while commands run.
    site.world.node.sysctl({
      "net.netfilter.nf_conntrack_udp_timeout": 600,
      "net.netfilter.nf_conntrack_udp_timeout_stream": 600,
    });
    await site.update([]);
    await site.start();
  });
  afterAll(() => site?.close());
  afterEach(() => {
    for (const conversation of open) conversation.close();
    open = [];
  });

  /** Opens a connection or flow from a place, and exchanges something. */
  async function talk(place: "L1" | "X", protocol: "tcp" | "udp", address: string, port: number) {
    const source = inFamily(places[place], familyOf(address));
    const conversation = openConversation(senderAt(site.world, source), protocol, { address, port });
    open.push(conversation);
    return { conversation, reply: await conversation.talk() };
  }

  const json = async (...argv: string[]) => {
    const { status, stdout, stderr } = await site.turnout(...argv, "-o", "json");
    if (status === 1) throw new Error(stderr);
    return { status, stderr, answer: JSON.parse(stdout) };
  };
  const doctor = (...argv: string[]) => json("doctor", "flows", "--wait=0", ...argv);
  const classes = async (): Promise<Record<string, number>> => {
    const { answer } = await doctor();
    return Object.fromEntries(
      answer.classes.flatMap((each: { class: string; count: number }) =>
        each.count === 0 ? [] : [[each.class, each.count]],
      ),
    );
  };
  /** Entries that a command removes, as the real conntrack tool lists them; not those of connections that ended, which expire. */
  const removedBy = async (...argv: string[]) => {
    const before = site
      .conntrack()
      .filter((line) => !/ (FIN_WAIT|CLOSE|CLOSE_WAIT|LAST_ACK|TIME_WAIT) /.test(line));
    const { status, answer } = await json("doctor", "flows", ...argv);
    const ids = new Set(site.conntrack().map(idOf));
    return { status, answer, removed: before.filter((line) => !ids.has(idOf(line))) };
  };

  describe.each(families)("%s", (family) => {
    const [local, remote, other] = ["10.180.0.2", "10.180.1.1", "10.180.1.2"].map((each) => at(each)) as [
      string,
      string,
      string,
    ];
    const [webIP, dnsIP, oldIP, silentIP] = [10, 2, 20, 3].map((each) => at(`172.30.0.${each}`)) as [
      string,
      string,
      string,
      string,
    ];
    const web: SiteService = {
      name: "shop/web",
      clusterIP: webIP,
      port: 80,
      nodePort: 30_080,
      endpoints: [remote],
    };
    const dns: SiteService = {
      name: "kube-system/dns",
      protocol: "UDP",
      clusterIP: dnsIP,
      port: 53,
      endpoints: [remote],
    };
    const silent: SiteService = {
      name: "shop/silent",
      clusterIP: silentIP,
      port: 80,
      targetPort: silentPort,
      endpoints: [remote],
    };
    /** In the other family, with the same ports. */
    const bystander: SiteService = {
      name: "shop/bystander",
      clusterIP: inFamily("172.30.0.10", opposite(family)),
      port: 80,
      endpoints: [inFamily("10.180.1.1", opposite(family))],
    };
    const node = at(places.host);
    const remoteKey = joinHostPort(remote, 8080);

    function at(address: string): string {
      return inFamily(address, family);
    }

    const update = (...services: readonly SiteService[]) => site.update([...services, bystander]);

    beforeEach(async () => {
      await update(web, dns);
      site.world.forgetFlows();
      // Flows that no command may delete: of the other family, of no Service, and of the node itself.
      await talk("L1", "tcp", bystander.clusterIP, 80);
      await talk("L1", "tcp", local, 8080);
      await talk("X", "tcp", node, 8080);
    });

    it("lists flows with their Service, endpoint and share, and only flows of Services", async () => {
      await talk("L1", "tcp", webIP, 80);
      await talk("X", "tcp", node, 30_080);
      await talk("L1", "udp", dnsIP, 53);
      const { status, answer } = await json("flows");
      expect(status).toBe(0);
      const listed = answer.flows
        .filter((flow: Record<string, unknown>) => flow.service !== bystander.name)
        .map((flow: Record<string, unknown>) => [
          flow.service,
          flow.frontend,
          flow.state,
          flow.endpoint,
          flow.node,
          (flow.today as { kind: string; among: number }).kind,
        ]);
      expect(listed.sort()).toEqual([
        ["kube-system/dns", "clusterIP", "replied", remoteKey, "node-b", "eligible"],
        ["shop/web", "clusterIP", "ESTABLISHED", remoteKey, "node-b", "eligible"],
        ["shop/web", "nodePort", "ESTABLISHED", remoteKey, "node-b", "eligible"],
      ]);
      expect(answer.examined).toBe(site.conntrack().length);
      expect((await json("flows", "--all")).answer.matched).toBe(site.conntrack().length);
    });

    it("selects flows by Service, pod, endpoint and node port", async () => {
      await talk("L1", "tcp", webIP, 80);
      await talk("X", "tcp", node, 30_080);
      const ofServices = async (selector: string) => {
        const { flows } = (await json("flows", selector)).answer as { flows: Record<string, string>[] };
        const known = flows.filter(({ service }) => ["shop/web", "shop/bystander"].includes(service!));
        return [...new Set(known.map(({ service, frontend }) => `${service} ${frontend}`))].sort();
      };
      const [inside, outside] = ["shop/web clusterIP", "shop/web nodePort"];
      expect(await ofServices("svc/shop/web")).toEqual([inside, outside]);
      expect(await ofServices(`pod:${at(places.L1)}`)).toEqual([inside]);
      expect(await ofServices(`pod:${remote}`)).toEqual([inside, outside]);
      expect(await ofServices(remoteKey)).toEqual([inside, outside]);
      expect(await ofServices(joinHostPort(webIP, 80))).toEqual([inside]);
      expect(await ofServices(":30080")).toEqual([outside]);
      expect(await ofServices(":30081")).toEqual([]);
    });

    it("finds nothing wrong with flows of other software, nor with those in use", async () => {
      await withHostPort(8443, async () => {
        expect((await talk("X", "tcp", node, 8443)).reply).toBe(joinHostPort(at(places.L1), 8080));
        await talk("L1", "tcp", webIP, 80);
        await talk("L1", "udp", dnsIP, 53);
        expect(await classes()).toEqual({});
        expect((await site.turnout("doctor", "flows", "--wait=0")).status).toBe(0);
        const classNames = "endpoint-gone,service-deleted,not-eligible,untranslated,unreplied";
        expect(await removedBy("--wait=0", `--delete=${classNames}`)).toMatchObject({
          status: 0,
          removed: [],
        });
      });
    });

    it("endpoint-gone: an attempt is deleted, and an established connection only if its endpoint is named", async () => {
      await update(web, dns, silent);
      const { conversation, reply } = await talk("L1", "tcp", webIP, 80);
      expect(reply).toBe(remoteKey);
      await talk("L1", "tcp", silentIP, 80);
      await update({ ...web, endpoints: [other] }, dns, { ...silent, endpoints: [other] });
      expect(await classes()).toEqual({ "endpoint-gone": 2 });
      const attempts = await removedBy("--wait=0", "--delete=endpoint-gone");
      expect([attempts.status, attempts.answer.deletion]).toEqual([
        3,
        { named: ["endpoint-gone"], deleted: 1, kept: 1 },
      ]);
      expect(attempts.removed).toEqual([translated("tcp", silentIP, remote)]);
      expect(await conversation.talk()).toBe(remoteKey);
      const refused = await site.turnout(
        "doctor",
        "flows",
        "--wait=0",
        `--reset-tcp=${joinHostPort(other, 8080)}`,
      );
      expect(refused).toMatchObject({
        status: 1,
        stderr: expect.stringContaining("it is an endpoint of shop/web"),
      });
      const reset = await removedBy("--wait=0", `--reset-tcp=${remoteKey}`);
      expect([reset.status, reset.answer.deletion.deleted]).toEqual([0, 1]);
      expect(reset.removed).toEqual([translated("tcp", webIP, remote)]);
      // The next packet of the client is translated to the remaining endpoint, which does not know the connection.
      expect(await conversation.talk()).toBe("reject");
    });

    it.each([
      ["is reset when another endpoint is ready", true, 1, "ECONNRESET"],
      ["is not reset when no endpoint is left", false, 1, "open"],
      ["is not reset when nf_conntrack_tcp_loose is 0", true, 0, "open"],
    ])("a client whose entry is deleted %s", async (_, hasOther, loose, outcome) => {
      site.world.node.sysctl({ "net.netfilter.nf_conntrack_tcp_loose": loose });
      const client = await plainClient(site, webIP, 80);
      await update({ ...web, endpoints: hasOther ? [other] : [] }, dns);
      const reset = await doctor(`--reset-tcp=${remoteKey}`);
      expect(reset.answer.deletion.deleted).toBe(1);
      send(client, Buffer.from("hello"));
      let state = "open";
      for (const end = Date.now() + 1500; state === "open" && Date.now() < end; await sleep(20))
        state = stateOf(client);
      abort(client);
      site.world.node.sysctl({ "net.netfilter.nf_conntrack_tcp_loose": 1 });
      expect(state).toBe(outcome);
    });

    it("service-deleted: an attempt is deleted, and an established connection is kept", async () => {
      const old: SiteService = { name: "shop/old", clusterIP: oldIP, port: 80, endpoints: [remote] };
      await update(web, dns, old, silent);
      await talk("L1", "tcp", oldIP, 80);
      await talk("L1", "tcp", silentIP, 80);
      await update(web, dns);
      expect(await classes()).toEqual({ "service-deleted": 2 });
      const { stdout } = await site.turnout("doctor", "flows", "--wait=0");
      expect(stdout).toContain("shop/old was removed from this address");
      const { answer, removed } = await removedBy("--wait=0", "--delete=service-deleted");
      expect(answer.deletion).toMatchObject({ deleted: 1, kept: 1 });
      expect(removed).toEqual([translated("tcp", silentIP, remote)]);
    });

    it("service-deleted: a node port and an external IP that a Service had, and not a hostPort at the same place", async () => {
      const externalIP = at("198.51.100.9");
      const old: SiteService = {
        name: "shop/old",
        clusterIP: oldIP,
        port: 80,
        nodePort: 30099,
        externalIPs: [externalIP],
        endpoints: [remote],
      };
      await update(web, dns, old);
      await talk("X", "tcp", node, 30099);
      await talk("L1", "tcp", externalIP, 80);
      await update(web, dns);
      expect(await classes()).toEqual({ "service-deleted": 2 });
      await withHostPort(30099, async () => {
        expect((await talk("X", "tcp", node, 30099)).reply).toBe(joinHostPort(at(places.L1), 8080));
        const { answer } = await doctor();
        expect(answer.classes[1]).toMatchObject({ class: "service-deleted", count: 2 });
        expect(answer.classes[1].examples.map(({ because }: { because: string }) => because)).toEqual([
          "shop/old was removed from this address",
          "shop/old was removed from this address",
        ]);
      });
    });

    it("not-eligible: draining endpoints, policy Local, and hints for another zone", async () => {
      const zoned: SiteService = { ...dns, name: "kube-system/zoned", clusterIP: oldIP };
      await update(web, dns, zoned);
      await talk("L1", "tcp", webIP, 80);
      await talk("L1", "udp", dnsIP, 53);
      await talk("L1", "udp", oldIP, 53);
      await update(
        { ...web, endpoints: [`${remote} draining`, other] },
        { ...dns, internalPolicy: "Local", endpoints: [remote, local] },
        { ...zoned, endpoints: [`${remote} zone:b`, `${local} zone:a`] },
      );
      const { answer } = await doctor();
      expect(answer.classes[2]).toMatchObject({
        class: "not-eligible",
        count: 3,
        established: 1,
        exclusions: { draining: 1, policy: 1, hints: 1 },
      });
      const wide = async (service: string) => (await site.turnout("flows", service, "-o", "wide")).stdout;
      expect(await wide("kube-system/dns")).toContain(
        "excluded: internalTrafficPolicy Local: the endpoint is on node-b",
      );
      expect(await wide("kube-system/zoned")).toContain(
        "excluded: hinted for zone b; this node is in zone a",
      );
      const deleted = await removedBy("--wait=0", "--delete=not-eligible");
      expect(deleted.answer.deletion).toMatchObject({ deleted: 2, kept: 1 });
      expect(deleted.removed).toEqual([translated("udp", dnsIP, remote), translated("udp", oldIP, remote)]);
    });

    it("untranslated: a connection attempt from before the Service", async () => {
      const externalIP = at("198.51.100.7");
      expect((await talk("L1", "tcp", externalIP, 80)).reply).toBe("reject");
      expect(await classes()).toEqual({});
      await update({ ...web, externalIPs: [externalIP] }, dns);
      expect(await classes()).toEqual({ untranslated: 1 });
      const { answer, removed } = await removedBy("--wait=0", "--delete=untranslated");
      expect(answer.deletion.deleted).toBe(1);
      expect(removed).toEqual([translated("tcp", externalIP, externalIP)]);
      expect(await classes()).toEqual({});
    });

    it("unreplied: a client that sends again and again, found by two readings; a single question is not", async () => {
      await update(web, dns, { ...silent, protocol: "UDP" });
      const { conversation } = await talk("L1", "udp", silentIP, 80);
      await talk("L1", "udp", silentIP, 80);
      const timer = setInterval(() => void conversation.talk(), 200);
      try {
        const { status, answer } = await json("doctor", "flows", "--wait=3");
        const found = answer.classes[4];
        expect([status, found.class, found.count]).toEqual([3, "unreplied", 1]);
        expect(found.examples[0].because).toBe("the client sent again within 3 s, and nothing was answered");
        const deleted = await removedBy("--wait=3", "--delete=unreplied");
        expect(deleted.answer.deletion.deleted).toBe(1);
        expect(deleted.removed).toEqual([translated("udp", silentIP, remote)]);
      } finally {
        clearInterval(timer);
      }
    });

    /** While a hostPort of L1 exists, as CNI plugins make it: the node's address, translated to a pod. */
    async function withHostPort(port: number, use: () => Promise<void>): Promise<void> {
      const ip = family === "ipv4" ? "ip" : "ip6";
      const rule = `${ip} daddr ${node} tcp dport ${port} dnat to ${joinHostPort(at(places.L1), 8080)}`;
      site.world.node.run(
        "nft",
        `add table ${ip} portmap; add chain ${ip} portmap pre { type nat hook prerouting priority -101; }; add rule ${ip} portmap pre ${rule}`,
      );
      try {
        await use();
      } finally {
        site.world.node.run("nft", `delete table ${ip} portmap`);
      }
    }
  });
});

function opposite(family: Family): Family {
  return family === "ipv4" ? "ipv6" : "ipv4";
}

/** A line of conntrack: a flow to this address, answered from that one. */
function translated(protocol: string, to: string, from: string) {
  return expect.stringMatching(new RegExp(`^${protocol} .*? dst=${to} .* src=${from} `));
}

function idOf(line: string): string {
  return /id=(\d+)/.exec(line)![1]!;
}

/** A connection of an ordinary program, which ICMP errors do not end once it is established. */
async function plainClient({ world }: FlowSite, address: string, port: number): Promise<number> {
  const fd = world.at.L1.inside(() => socket(domainOf(address), SOCK_STREAM, 0));
  connect(fd, { address, port });
  await expect.poll(() => receive(fd)?.data.length ?? 0).toBeGreaterThan(0);
  return fd;
}

/** Ends with RST: what was not acknowledged is not sent again, which would be another flow in the next test. */
function abort(fd: number): void {
  const [SOL_SOCKET, SO_LINGER] = [1, 13];
  setOption(fd, SOL_SOCKET, SO_LINGER, Buffer.from(new Int32Array([1, 0]).buffer));
  close(fd);
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
