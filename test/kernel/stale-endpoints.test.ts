// Endpoints that are replaced: UDP flows while no daemon runs, and TCP connections with --dead-tcp=reset, with real packets.
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { families, joinHostPort } from "../../src/model/address.ts";
import { inFamily, places } from "../places.ts";
import { type Conversation, openConversation } from "./conversation.ts";
import { type FlowSite, openFlowSite, type SiteService } from "./flow-site.ts";
import { reasonToSkip } from "./netns.ts";
import { senderAt } from "./probe.ts";

describe.skipIf(reasonToSkip() !== null).each(families)("an endpoint is replaced, %s", (family) => {
  const at = (address: string) => inFamily(address, family);
  const [old, replacement, other] = [at(places.R1), at(places.R2), at(places.L2)];
  const [oldKey, replacementKey, otherKey] = [keyOf(old), keyOf(replacement), keyOf(other)];
  const dns = (...endpoints: string[]): SiteService => ({
    name: "kube-system/dns",
    protocol: "UDP",
    clusterIP: at("172.30.0.2"),
    port: 53,
    endpoints,
  });
  const web = (...endpoints: string[]): SiteService => ({
    name: "shop/web",
    clusterIP: at("172.30.0.10"),
    port: 80,
    endpoints,
  });
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
    const conversation = openConversation(senderAt(site.world, at(places.L1)), protocol, { address, port });
    open.push(conversation);
    return conversation;
  }

  it("k/k 139628: while no daemon runs; the UDP flow that a client keeps alive moves after the first Sync", async () => {
    await site.update([dns(old)]);
    await site.start();
    const client = openFrom("udp", at("172.30.0.2"), 53);
    const bystander = openFrom("udp", other, 8080);
    expect(await client.talk()).toBe(oldKey);
    expect(await bystander.talk()).toBe(otherKey);
    await site.stop();
    await site.update([dns(replacement)]);
    // The rules of the old daemon are in place, and so is the entry: it lives as long as the client sends.
    expect(await client.talk()).toBe(oldKey);
    await site.start();
    await expect
      .poll(() => site.daemon().log())
      .toContain("Deleted UDP conntrack entries that led to removed");
    expect(site.daemon().log()).toMatch(
      new RegExp(`Deleted UDP conntrack entries .*family="${family}" entries=1`),
    );
    expect(await client.talk()).toBe(replacementKey);
    expect(site.conntrack().filter((line) => line.includes(`src=${old} `))).toEqual([]);
    expect(await bystander.talk()).toBe(otherKey);
  });

  it("k/k 124290: with --dead-tcp=reset, its connections end and no others", async () => {
    await site.update([web(old, other)]);
    await site.start("--dead-tcp=reset");
    const clients = Array.from({ length: 12 }, () => openFrom("tcp", at("172.30.0.10"), 80));
    const answerers = await Promise.all(clients.map((client) => client.talk()));
    expect(new Set(answerers)).toEqual(new Set([oldKey, otherKey]));
    await site.update([web(replacement, other)]);
    await expect.poll(() => site.daemon().log()).toContain("their clients are reset");
    const after = await Promise.all(clients.map((client) => client.talk()));
    expect(after).toEqual(answerers.map((answerer) => (answerer === oldKey ? "reject" : answerer)));
  });

  it("without the flag its connections are kept, and a terminating endpoint keeps them with it", async () => {
    await site.update([web(old, other)]);
    await site.start();
    const clients = Array.from({ length: 8 }, () => openFrom("tcp", at("172.30.0.10"), 80));
    const answerers = await Promise.all(clients.map((client) => client.talk()));
    await site.update([web(replacement, other)]);
    expect(await Promise.all(clients.map((client) => client.talk()))).toEqual(answerers);
    await site.stop();
    await site.update([web(`${old} draining`, replacement, other)]);
    await site.start("--dead-tcp=reset");
    await expect.poll(() => site.daemon().log()).toContain("Searched for stale conntrack entries");
    expect(await Promise.all(clients.map((client) => client.talk()))).toEqual(answerers);
    expect(site.daemon().log()).not.toContain("their clients are reset");
  });
});

/** The port on which every pod answers. */
function keyOf(address: string): string {
  return joinHostPort(address, 8080);
}
