// IP sets through `ipset`: its output, and the recovery when it stops at a line.
import { describe, expect, it } from "vitest";
import type { Start } from "../iptables/command.ts";
import { applyToSets, parseSets, type SetOperation } from "./sets.ts";

describe("reading IP sets", () => {
  const saved = `create KUBE-CLUSTER-IP hash:ip,port family inet hashsize 1024 maxelem 65536 bucketsize 12 initval 0x1
add KUBE-CLUSTER-IP 172.30.0.1,tcp:80
create KUBE-6-CLUSTER-IP hash:ip,port family inet6 hashsize 1024 maxelem 65536
add KUBE-6-CLUSTER-IP fd00::1,tcp:80
create KUBE-NODE-PORT-TCP bitmap:port range 0-65535
add KUBE-NODE-PORT-TCP 30080
create mine hash:ip family inet hashsize 64 maxelem 10
add mine 10.0.0.1
`;
  it("takes the sets of one family, by name", () => {
    expect(parseSets(saved, "ipv4")).toEqual(
      new Map([
        [
          "KUBE-CLUSTER-IP",
          {
            type: "hash:ip,port",
            family: "ipv4",
            maxElements: 65_536,
            entries: new Set(["172.30.0.1,tcp:80"]),
          },
        ],
        [
          "KUBE-NODE-PORT-TCP",
          { type: "bitmap:port", family: null, maxElements: null, entries: new Set(["30080"]) },
        ],
      ]),
    );
    expect([...parseSets(saved, "ipv6").keys()]).toEqual(["KUBE-6-CLUSTER-IP"]);
  });
});

describe("changing IP sets", () => {
  const operations: SetOperation[] = [
    { kind: "create set", set: { name: "KUBE-A", type: "hash:ip", family: "ipv6" } },
    { kind: "create set", set: { name: "KUBE-B", type: "bitmap:port", family: "ipv4" } },
    { kind: "add entry", set: "KUBE-A", entry: "fd00::1" },
    { kind: "delete entry", set: "KUBE-B", entry: "80" },
    { kind: "destroy set", set: "KUBE-C" },
  ];
  const numbered = (list: readonly SetOperation[]) => list.map((operation, at) => ({ at, operation }));

  it("20/26 is one restore with everything", async () => {
    const { start, inputs } = programPrinting();
    const { failures, messages } = await applyToSets(start, numbered(operations));
    expect({ failures, messages }).toEqual({ failures: [], messages: 5 });
    expect(inputs).toEqual([
      [
        "create KUBE-A hash:ip family inet6 hashsize 1024 maxelem 65536 -exist",
        "create KUBE-B bitmap:port range 0-65535 -exist",
        "add KUBE-A fd00::1 -exist",
        "del KUBE-B 80 -exist",
        "destroy KUBE-C",
        "",
      ].join("\n"),
    ]);
  });

  it("names the line that was refused and does the others again", async () => {
    const { start, inputs } = programPrinting("ipset v7.17: Error in line 3: Syntax error: no address\n");
    const { failures } = await applyToSets(start, numbered(operations));
    expect(failures).toEqual([{ operation: 2, errno: "", reason: "Syntax error: no address" }]);
    expect(inputs[1]!.split("\n")).toHaveLength(5);
  });

  it.each([
    ["20/47 tries a full set once", "add entry", "Hash is full, cannot add more elements"],
    ["tries a set that is gone once", "delete entry", "The set with the given name does not exist"],
  ] as const)("%s", async (_, kind, why) => {
    const alike = ["::1", "::2", "::3"].map((entry): SetOperation => ({ kind, set: "KUBE-A", entry }));
    const { start, inputs } = programPrinting(`ipset v7.17: Error in line 2: ${why}\n`);
    const { failures } = await applyToSets(start, numbered([...alike, ...operations]));
    // What comes after other changes may fit again.
    expect(failures.map(({ operation }) => operation)).toEqual([1, 2]);
    expect(inputs).toHaveLength(2);
  });

  it("ignores a missing set when it is destroyed", async () => {
    const { start } = programPrinting(
      "ipset v7.17: Error in line 5: The set with the given name does not exist",
    );
    expect((await applyToSets(start, numbered(operations))).failures).toEqual([]);
  });

  it("throws when the message names no line", async () => {
    const { start } = programPrinting("ipset v7.17: Kernel error received: Operation not permitted\n");
    await expect(applyToSets(start, numbered(operations))).rejects.toThrow("Operation not permitted");
  });
});

/** A program that fails with these messages, one after the other, and then succeeds. */
function programPrinting(...words: string[]): { start: Start; inputs: string[] } {
  const inputs: string[] = [];
  const start: Start = (_, __, input) => {
    inputs.push(typeof input === "string" ? input : [...input].join(""));
    const stderr = words.shift();
    const finished = Promise.resolve({
      code: stderr === undefined ? 0 : 1,
      stdout: "",
      stderr: stderr ?? "",
    });
    return { pid: 1, finished };
  };
  return { start, inputs };
}
