// What a change of the cluster writes: only the chains and rules that it affects.
import { describe, expect, it } from "vitest";
import { endpoint, ipv4Settings, routed, servicePort } from "../../../test/support/routed.ts";
import type { ServicePort } from "../../model/snapshot.ts";
import { compile } from "../../modes/iptables/compile.ts";
import { adopt } from "./adopt.ts";
import { countOperations, diff } from "./diff.ts";
import { parseSave } from "./parse.ts";
import { print, printPatch } from "./print.ts";
import type { HostTables, IptablesPlan } from "./types.ts";

const counters = { invalidDropped: false, localhostNodePorts: false };

const one = endpoint("10.180.0.1:8080");
const two = endpoint("10.180.1.1:8080");
const web = servicePort("shop/web:http", { endpoints: [one, two] });
const others = Array.from({ length: 20 }, (_, i) =>
  servicePort(`shop/other${i}`, { clusterIP: `172.30.1.${i}`, nodePort: 30100 + i, endpoints: [one] }),
);

function planOf(ports: readonly ServicePort[]): IptablesPlan {
  return compile(null, routed(ports), counters);
}

/** Restore input from these ports to those. */
function change(before: readonly ServicePort[], after: readonly ServicePort[]): string[] {
  const old = routed(before);
  const have = compile(null, old, counters);
  const want = compile(have, routed(after, ipv4Settings, old), counters);
  return printPatch(diff(have, want, want.changed))
    .split("\n")
    .slice(0, -1);
}

describe("a change", () => {
  it("10/40 10/41 of one endpoint touches its Service's choice, the new chain and the old one", () => {
    const moved = { ...web, endpoints: [one, endpoint("10.180.1.9:8080")] };
    expect(change([web, ...others], [moved, ...others])).toEqual([
      "*nat",
      ":KUBE-SVC-67NZLRHBNDSAWJRO - [0:0]",
      ":KUBE-SEP-6WWFQUSLKBB6X2E6 - [0:0]",
      ":KUBE-SEP-YCI5FLUZZZWLO7SW - [0:0]",
      '-A KUBE-SVC-67NZLRHBNDSAWJRO -m comment --comment "shop/web:http cluster IP" -m tcp -p tcp -d 172.30.0.10 --dport 80 ! -s 10.0.0.0/8 -j KUBE-MARK-MASQ',
      '-A KUBE-SVC-67NZLRHBNDSAWJRO -m comment --comment "shop/web:http -> 10.180.0.1:8080" -m statistic --mode random --probability 0.5000000000 -j KUBE-SEP-ZZ5QQVSVEYRRQLTX',
      '-A KUBE-SVC-67NZLRHBNDSAWJRO -m comment --comment "shop/web:http -> 10.180.1.9:8080" -j KUBE-SEP-6WWFQUSLKBB6X2E6',
      "-A KUBE-SEP-6WWFQUSLKBB6X2E6 -m comment --comment shop/web:http -s 10.180.1.9 -j KUBE-MARK-MASQ",
      "-A KUBE-SEP-6WWFQUSLKBB6X2E6 -m comment --comment shop/web:http -m tcp -p tcp -j DNAT --to-destination 10.180.1.9:8080",
      "-X KUBE-SEP-YCI5FLUZZZWLO7SW",
      "COMMIT",
    ]);
  });

  it("security/3: of 1,000 external IPs and 1,000 endpoints costs their sum, not their product", () => {
    const many = (count: number, first: number) =>
      Array.from({ length: count }, (_, i) => `${first}.0.${i >> 8}.${i & 255}`);
    const large = {
      ...web,
      externalIPs: many(1000, 100),
      endpoints: many(1000, 10).map((address) => endpoint(`${address}:8080`)),
    };
    const old = routed([web]);
    const have = compile(null, old, counters);
    const want = compile(have, routed([large], ipv4Settings, old), counters);
    const operations = countOperations(diff(have, want, want.changed));
    expect(operations).toBeGreaterThan(5000);
    expect(operations).toBeLessThan(5100);
  });

  it("security/3: of 150,000 rules and as many left-over chains is possible", () => {
    const externalIPs = Array.from(
      { length: 150_000 },
      (_, i) => `100.${i >> 16}.${(i >> 8) & 255}.${i & 255}`,
    );
    const old = routed([web]);
    const have = compile(null, old, counters);
    const want = compile(have, routed([{ ...web, externalIPs }], ipv4Settings, old), counters);
    expect(countOperations(diff(have, want, want.changed))).toBeGreaterThan(150_000);
    const leftOver = externalIPs.map((address): [string, string[]] => [`KUBE-SEP-${address}`, []]);
    const host: HostTables = { family: "ipv4", tables: new Map([["nat", new Map(leftOver)]]) };
    expect(adopt(host, have).steps.find(({ table }) => table === "nat")!.doom).toHaveLength(150_000);
  });

  it("10/24 of the affinity time-out rewrites that Service's choice alone", () => {
    const sticky = (seconds: number) => ({ ...web, affinity: { seconds } });
    const lines = change([sticky(10), ...others], [sticky(20), ...others]);
    expect(lines.filter((line) => line.startsWith(":"))).toEqual([":KUBE-SVC-67NZLRHBNDSAWJRO - [0:0]"]);
  });

  it("10/42 that deletes a Service deletes all its chains in one restore", () => {
    const everything = servicePort("shop/all", {
      clusterIP: "172.30.0.77",
      nodePort: 30077,
      loadBalancerIPs: ["198.51.100.7"],
      sourceRanges: ["203.0.113.0/24"],
      externalPolicy: "local",
      endpoints: [one, two],
    });
    const lines = change([everything, ...others], others);
    const deleted = lines.filter((line) => line.startsWith("-X")).map((line) => line.slice(3, 11));
    expect(deleted.sort()).toEqual(["KUBE-EXT", "KUBE-FW-", "KUBE-SEP", "KUBE-SEP", "KUBE-SVC", "KUBE-SVL"]);
    expect(lines.filter((line) => line === "*nat")).toHaveLength(1);
  });

  it("to no endpoints refuses before it stops forwarding, and back forwards before it stops refusing", () => {
    const empty = { ...web, endpoints: [] };
    const tables = (lines: string[]) =>
      lines.filter((line) => /^(\*|-[ID] )/.test(line)).map((line) => line.slice(0, 16));
    expect(tables(change([web], [empty]))).toEqual([
      "*filter",
      "-I KUBE-SERVICES",
      "*nat",
      "-D KUBE-SERVICES",
    ]);
    expect(tables(change([empty], [web]))).toEqual([
      "*nat",
      "-I KUBE-SERVICES",
      "*filter",
      "-D KUBE-SERVICES",
    ]);
  });

  it("that changes nothing writes nothing", () => {
    expect(change([web], [{ ...web }])).toEqual([]);
  });
});

describe("adopting what a host holds", () => {
  const host = (text: string) => parseSave(text, "ipv4");

  it("10/10 writes filter before nat, even without Services", () => {
    const tables = printPatch(adopt(host(""), planOf([]))).match(/^\*.*/gm);
    expect(tables).toEqual(["*filter", "*nat", "*mangle"]);
  });

  it("10/43 deletes chains that an earlier run left, and no others", () => {
    const left = ["KUBE-SVC-AAAA", "KUBE-SEP-AAAA", "KUBE-FOO", "KUBE-KUBELET-CANARY", "KUBE-SVCX", "OTHER"];
    const text = print(planOf([web])).replace(
      "*nat\n",
      `*nat\n${left.map((name) => `:${name} - [0:0]\n`).join("")}`,
    );
    const patch = adopt(host(text), planOf([web]));
    expect(patch.steps).toHaveLength(1);
    expect(patch.steps[0]!.doom).toEqual(["KUBE-SVC-AAAA", "KUBE-SEP-AAAA"]);
    expect(patch.steps[0]!.write).toEqual([]);
  });

  it("keeps a left-over chain that a foreign rule refers to: deleting it would fail the whole restore", () => {
    const text = `${print(planOf([]))}`.replace(
      "*nat\n",
      "*nat\n:MINE - [0:0]\n:KUBE-SVC-AAAA - [0:0]\n-A MINE -p tcp -j KUBE-SVC-AAAA\n",
    );
    expect(adopt(host(text), planOf([])).steps).toEqual([]);
  });

  it("10/6 puts a missing jump on top, and leaves moved ones where they are", () => {
    const text = print(planOf([web]));
    const [first, ...rest] = text.match(/^-A INPUT .*\n/gm)!;
    const moved = text.replace([first, ...rest].join(""), [...rest, first].join(""));
    expect(adopt(host(moved), planOf([web])).steps).toEqual([]);
    const lacking = printPatch(adopt(host(text.replace(rest[0]!, "")), planOf([web])));
    expect(lacking).toBe(
      '*filter\n-I INPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes load balancer firewall" -j KUBE-PROXY-FIREWALL\nCOMMIT\n',
    );
  });

  it("rewrites a chain that another program changed", () => {
    const text = print(planOf([web, ...others]));
    const line = /^-A KUBE-SEP-ZZ5QQVSVEYRRQLTX.*DNAT.*\n/m.exec(text)![0];
    const patch = adopt(host(text.replace(line, "")), planOf([web, ...others]));
    expect(patch.steps.flatMap(({ write }) => write.map(({ name }) => name))).toEqual([
      "KUBE-SEP-ZZ5QQVSVEYRRQLTX",
    ]);
  });

  it("accepts Services in any order, but not their rules", () => {
    const two = { ...web, externalIPs: ["192.168.99.1"] };
    const plan = planOf([two, ...others]);
    const text = print(plan);
    const services = text.match(/^-A KUBE-SERVICES -d .*\n/gm)!;
    const withServices = (lines: readonly string[]) => text.replace(services.join(""), lines.join(""));
    expect(adopt(host(withServices(services.toSorted())), plan).steps).toEqual([]);
    const swapped = [services.at(-1)!, ...services.slice(0, -1)];
    expect(swapped[0]).toContain("external IP");
    expect(adopt(host(withServices(swapped)), plan).steps).toHaveLength(1);
  });

  it("recognises a rule that another version prints differently", () => {
    const plan = compile(
      null,
      routed([servicePort("shop/web:http", { affinity: { seconds: 5 }, endpoints: [one, two] })]),
      {
        ...counters,
        invalidDropped: true,
      },
    );
    const text = print(plan)
      .replaceAll("--nfacct-name  ", "--nfacct-name ")
      .replaceAll("0.50000000000", "0.5000000000")
      .replaceAll(/-d (\S+)\/32 /g, "-d $1 ");
    expect(text).not.toBe(print(plan));
    expect(adopt(host(text), plan).steps).toEqual([]);
  });
});
