// Endpoints that are replaced: UDP flows while no daemon runs, and TCP connections with --dead-tcp=reset, with real packets.
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { places } from "../places.ts";
import { type Conversation, openConversation } from "./conversation.ts";
import { type FlowSite, openFlowSite, type SiteService } from "./flow-site.ts";
import { reasonToSkip } from "./netns.ts";
import { senderAt } from "./probe.ts";

const [old, replacement] = ["10.180.1.1", "10.180.1.2"] as const;
const dns = (...endpoints: string[]): SiteService => ({
  name: "kube-system/dns",
  protocol: "UDP",
  clusterIP: "172.30.0.2",
  port: 53,
  endpoints,
});
const web = (...endpoints: string[]): SiteService => ({
  name: "shop/web",
  clusterIP: "172.30.0.10",
  port: 80,
  endpoints,
});

describe.skipIf(reasonToSkip() !== null)("an endpoint is replaced", () => {
  let site: FlowSite;
  let open: Conversation[] = [];

  beforeEach(async () => {
    site = await openFlowSite("se");
  });
  afterEach(async () => {
    for (const conversation of open) conversation.close();
    open = [];
    await site.close();
  });

  function openFrom(protocol: "tcp" | "udp", address: string, port: number): Conversation {
    const conversation = openConversation(senderAt(site.world, places.L1), protocol, { address, port });
    open.push(conversation);
    return conversation;
  }

  it("k/k 139628: while no daemon runs; the UDP flow that a client keeps alive moves after the first Sync", async () => {
    await site.update([dns(old)]);
    await site.start();
    const client = openFrom("udp", "172.30.0.2", 53);
    const bystander = openFrom("udp", places.L2, 8080);
    expect(await client.talk()).toBe(`${old}:8080`);
    expect(await bystander.talk()).toBe(`${places.L2}:8080`);
    await site.stop();
    await site.update([dns(replacement)]);
    // The rules of the old daemon are in place, and so is the entry: it lives as long as the client sends.
    expect(await client.talk()).toBe(`${old}:8080`);
    await site.start();
    await expect
      .poll(() => site.daemon().log())
      .toContain("Deleted UDP conntrack entries that led to removed");
    expect(site.daemon().log()).toMatch(/Deleted UDP conntrack entries .*family="ipv4" entries=1/);
    expect(await client.talk()).toBe(`${replacement}:8080`);
    expect(site.conntrack().filter((line) => line.includes(`src=${old} `))).toEqual([]);
    expect(await bystander.talk()).toBe(`${places.L2}:8080`);
  });

  it("k/k 124290: with --dead-tcp=reset, its connections end and no others", async () => {
    await site.update([web(old, places.L2)]);
    await site.start("--dead-tcp=reset");
    const clients = Array.from({ length: 12 }, () => openFrom("tcp", "172.30.0.10", 80));
    const answerers = await Promise.all(clients.map((client) => client.talk()));
    expect(new Set(answerers)).toEqual(new Set([`${old}:8080`, `${places.L2}:8080`]));
    await site.update([web(replacement, places.L2)]);
    await expect.poll(() => site.daemon().log()).toContain("their clients are reset");
    const after = await Promise.all(clients.map((client) => client.talk()));
    expect(after).toEqual(answerers.map((answerer) => (answerer === `${old}:8080` ? "reject" : answerer)));
  });

  it("without the flag its connections are kept, and a terminating endpoint keeps them with it", async () => {
    await site.update([web(old, places.L2)]);
    await site.start();
    const clients = Array.from({ length: 8 }, () => openFrom("tcp", "172.30.0.10", 80));
    const answerers = await Promise.all(clients.map((client) => client.talk()));
    await site.update([web(replacement, places.L2)]);
    expect(await Promise.all(clients.map((client) => client.talk()))).toEqual(answerers);
    await site.stop();
    await site.update([web(`${old}:draining`, replacement, places.L2)]);
    await site.start("--dead-tcp=reset");
    await expect.poll(() => site.daemon().log()).toContain("Searched for stale conntrack entries");
    expect(await Promise.all(clients.map((client) => client.talk()))).toEqual(answerers);
    expect(site.daemon().log()).not.toContain("their clients are reset");
  });
});
