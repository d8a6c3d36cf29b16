// A node for tests of the host of ipvs mode: emptied before each test; and the servers they speak of.
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, beforeEach } from "vitest";
import { type IpvsHost, openIpvsHost } from "../../src/host/ipvs/host.ts";
import { type Family, families } from "../../src/model/address.ts";
import type { Operation, ServerId, VirtualServer } from "../../src/plan/ipvs/types.ts";
import { createNamespace, type Namespace } from "../kernel/netns.ts";

export type IpvsNode = {
  readonly hosts: Readonly<Record<Family, IpvsHost>>;
  readonly node: Pick<Namespace, "ip" | "run" | "path">;
};

/** Of /proc/net/ip_vs, which lists servers below. */
const headerLines = 3;

/** Both are there from the first test on. */
export function ipvsNode(): IpvsNode {
  const hosts = {} as Record<Family, IpvsHost>;
  const node = {} as Namespace;
  beforeAll(async () => {
    Object.assign(node, createNamespace());
    node.ip("link set lo up");
    for (const family of families) hosts[family] = await openIpvsHost({ family, netns: node.path });
  });
  afterAll(async () => {
    for (const host of Object.values(hosts)) await host.close();
    node.remove();
  });
  beforeEach(() => {
    // Starting a program takes a tenth of a second here, reading a file nothing.
    const lines = (file: string) =>
      node
        .inside(() => readFileSync(`/proc/thread-self/net/${file}`, "utf8"))
        .trimEnd()
        .split("\n");
    if (lines("ip_vs").length > headerLines) node.run("ipvsadm", "-C");
    node.run("ipset", "destroy");
    if (lines("dev").some((line) => line.includes("kube-ipvs0"))) node.ip("link delete kube-ipvs0");
  });
  return { node, hosts };
}

export const web: ServerId = { address: "172.30.0.1", port: 80, protocol: "tcp" };
export const web6: ServerId = { address: "fd00:30::1", port: 80, protocol: "tcp" };
export const server = (id: ServerId, change: Partial<VirtualServer> = {}): Operation => ({
  kind: "add server",
  server: { ...id, scheduler: "rr", flags: 0, timeoutSeconds: 0, ...change },
});
export const destination = (id: ServerId, address: string, weight = 1, port = 8080): Operation => ({
  kind: "add destination",
  server: id,
  destination: { address, port, weight },
});
