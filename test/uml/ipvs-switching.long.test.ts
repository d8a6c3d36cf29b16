// From ipvs mode to other modes and back: connections continue.
import { afterAll, describe, expect, it } from "vitest";
import { families } from "../../src/model/address.ts";
import { eventually } from "../kernel/site.ts";
import { inFamily, places } from "../places.ts";
import { at, openLab, serverAt, shop, slow } from "./ipvs-lab.ts";

const lab = openLab();
const { L1, L2, X, host } = places;
const vip = "172.30.0.40";
const nodePort = 30040;
afterAll(() => lab.stop(), slow);

describe("switching modes", () => {
  it.for(["iptables", "nftables", "userspace"])(
    "ipvs → %s → ipvs: connections go on",
    async (mode, { skip }) => {
      skip(mode === "nftables" && !hasNftables(), "this kernel has no nf_tables");
      lab.show(...shop("web", { type: "NodePort", clusterIP: vip, nodePort }, [L1]));
      await lab.start();
      for (const family of families) await lab.become(serverAt(vip, family), { [at(L1, family)]: 1 });
      const before = sessions();
      expect(await answers(before)).toEqual(endpoints);

      await lab.start({ mode });
      await eventually(
        () => serversWithoutConnections() === 0 || mode === "iptables",
        "the release",
        slow / 2,
      );
      expect(await answers(before)).toEqual(endpoints);
      const between = sessions();
      expect(await answers(between)).toEqual(endpoints);
      expect(weights()).toEqual(new Set([mode === "iptables" ? "1" : "0"]));

      await lab.start();
      expect(await answers(before)).toEqual(endpoints);
      const after = sessions();
      expect(await answers(after)).toEqual(endpoints);
      expect(weights()).toEqual(new Set(["1"]));
      // A relay ends with its process.
      const lasting = mode === "userspace" ? after : [...between, ...after];
      expect(await answers(lasting)).toEqual(lasting.map((_, i) => endpoints[i % endpoints.length]));
      for (const session of [...before, ...between, ...after]) session.close();
    },
  );

  it("ipvs → userspace: when the last connection has ended, nothing of ipvs mode is left", async () => {
    await lab.start({ ipvs: { tcpFinTimeout: "2s" } });
    const open = sessions();
    expect(await answers(open)).toEqual(endpoints);
    await lab.start({ mode: "userspace" });
    await eventually(() => weights().has("0") && !weights().has("1"), "the release", slow / 2);
    for (const session of open) session.close();
    await eventually(() => listed("ipset", "save") === "", "no sets", slow);
    expect(listed("ipvsadm", "-Sn")).toBe("");
    expect(listed("ip", "-o", "link")).not.toContain("kube-ipvs0");
  });
});

/** A user-mode kernel of Debian has it for no family. */
function hasNftables(): boolean {
  try {
    lab.world.node.run("nft", "add", "table", "ip", "probe");
    lab.world.node.run("nft", "delete", "table", "ip", "probe");
    return true;
  } catch {
    return false;
  }
}

/** To the cluster IP from a pod, and to the NodePort from outside, in both families. */
function sessions() {
  return families.flatMap((family) => [
    lab.open(inFamily(L2, family), inFamily(vip, family), 80),
    lab.open(inFamily(X, family), inFamily(host, family), nodePort),
  ]);
}

const endpoints = families.flatMap((family) => [at(L1, family), at(L1, family)]);

function answers(list: ReturnType<typeof sessions>): Promise<string[]> {
  return Promise.all(list.map((session) => session.talk()));
}

function weights(): Set<string> {
  return new Set([...listed("ipvsadm", "-Sn").matchAll(/ -w (\d+)/g)].map(([, weight]) => weight!));
}

/** Of the node's addresses some were never called. */
function serversWithoutConnections(): number {
  const rows = listed("ipvsadm", "-Ln")
    .split("\n")
    .filter((line) => line.includes("->"));
  return rows.slice(1).filter((line) => / 0 +0 *$/.test(line)).length;
}

function listed(program: string, ...args: readonly string[]): string {
  return lab.world.node.run(program, ...args);
}
