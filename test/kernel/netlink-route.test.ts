// rtnetlink and generic netlink: links and addresses as `ip` shows them, changes, events, families.
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { resolveFamily } from "../../src/host/netlink/generic.ts";
import {
  addAddress,
  addLink,
  deleteAddress,
  deleteLink,
  type LinkAddress,
  readAddresses,
  readLinks,
  setLinkUp,
  watchAddresses,
} from "../../src/host/netlink/route.ts";
import { type NetlinkSocket, openSocket } from "../../src/host/netlink/socket.ts";
import { createNamespace, isRoot, type Namespace } from "./netns.ts";

describe.runIf(isRoot)("rtnetlink", () => {
  let here: Namespace;
  let socket: NetlinkSocket;
  beforeEach(async () => {
    here = createNamespace();
    socket = await openSocket("route", { netns: here.path });
  });
  afterEach(async () => {
    await socket.close();
    here.remove();
  });
  const place = () => ({ netns: here.path });

  it("reads links and addresses as ip shows them", async () => {
    here.run("ip", "link", "add", "one", "type", "veth", "peer", "name", "two");
    here.run("ip", "link", "set", "lo", "up");
    here.run("ip", "address", "add", "10.1.2.3/24", "dev", "one");
    here.run("ip", "address", "add", "10.9.0.1", "peer", "10.9.0.2/32", "dev", "one");
    here.run("ip", "address", "add", "fd00::7/64", "dev", "one");
    const links = await readLinks(place());
    expect(links).toMatchObject([
      { name: "lo", kind: "", up: true, loopback: true },
      { name: "two", kind: "veth", up: false, loopback: false, mtu: 1500 },
      { name: "one", kind: "veth", up: false },
    ]);
    const one = links.find(({ name }) => name === "one")!.index;
    const found = await readAddresses(place());
    expect(found).toContainEqual(entry("ipv4", "10.1.2.3", 24, one, "global"));
    expect(found).toContainEqual(entry("ipv4", "10.9.0.1", 32, one, "global"));
    expect(found).toContainEqual(entry("ipv6", "fd00::7", 64, one, "global"));
    expect(found).toContainEqual(entry("ipv4", "127.0.0.1", 8, 1, "host"));
    expect(found).toContainEqual(entry("ipv6", "::1", 128, 1, "host"));
  });

  it("adds and removes links and addresses, and reports why it cannot", async () => {
    await addLink(socket, "kube", "bridge");
    await setLinkUp(socket, "lo");
    const links = await readLinks(place());
    expect(links).toMatchObject([
      { name: "lo", up: true },
      { name: "kube", kind: "bridge", up: true },
    ]);
    const link = links[1]!.index;
    const wanted = { family: "ipv4", address: "172.30.0.1", prefixLength: 32, link } as const;
    const wanted6 = { family: "ipv6", address: "fd30::1", prefixLength: 128, link } as const;
    await addAddress(socket, wanted);
    await addAddress(socket, wanted6);
    expect(await readAddresses(place())).toEqual(
      expect.arrayContaining([expect.objectContaining(wanted), expect.objectContaining(wanted6)]),
    );
    await expect(addAddress(socket, wanted)).rejects.toMatchObject({ kind: "refused", errno: "EEXIST" });
    await deleteAddress(socket, wanted);
    await expect(deleteAddress(socket, wanted)).rejects.toMatchObject({ errno: "EADDRNOTAVAIL" });
    await deleteLink(socket, "kube");
    await expect(deleteLink(socket, "kube")).rejects.toThrow("Cannot delete link kube: ENODEV");
    expect(await readLinks(place())).toHaveLength(1);
  });

  it("reports addresses that come and go", async () => {
    const stop = new AbortController();
    const seen: string[] = [];
    const changed = (change: string, { address }: LinkAddress) => void seen.push(`${change} ${address}`);
    await watchAddresses({ changed, lost: () => seen.push("lost") }, stop.signal, place());
    here.run("ip", "address", "add", "10.1.2.3/24", "dev", "lo");
    here.run("ip", "address", "add", "fd00::7/64", "dev", "lo", "nodad");
    here.run("ip", "address", "delete", "10.1.2.3/24", "dev", "lo");
    await expect.poll(() => seen).toContain("removed 10.1.2.3");
    stop.abort();
    expect(seen.filter((line) => line.includes("10.1.2.3"))).toEqual(["added 10.1.2.3", "removed 10.1.2.3"]);
  });
});

describe.runIf(isRoot)("generic netlink", () => {
  it("finds families by name, with their groups", async () => {
    const socket = await openSocket("generic");
    expect(await resolveFamily(socket, "nlctrl")).toMatchObject({ id: 16, name: "nlctrl" });
    expect((await resolveFamily(socket, "nlctrl")).groups.get("notify")).toBeGreaterThan(0);
    await expect(resolveFamily(socket, "NOT_THERE")).rejects.toMatchObject({ kind: "unavailable" });
    await socket.close();
  });
});

function entry(
  family: LinkAddress["family"],
  address: string,
  prefixLength: number,
  link: number,
  scope: LinkAddress["scope"],
): LinkAddress {
  return { family, address, prefixLength, link, scope };
}
