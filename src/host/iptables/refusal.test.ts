// Errors of both back ends, as iptables 1.8.9 prints them, lead to the line and the Service.
import { describe, expect, it } from "vitest";
import type { InputLine } from "../../plan/iptables/print.ts";
import { restoreFailure } from "./refusal.ts";

const input: readonly InputLine[] = [
  { text: "*nat", owner: null },
  { text: ":KUBE-SVC-A - [0:0]", owner: "shop/web/tcp/http" },
  { text: "-A KUBE-SVC-A -m comment --comment bad --oops", owner: "shop/web/tcp/http" },
  { text: "-A KUBE-SVC-A -j KUBE-SEP-B", owner: "shop/web/tcp/http" },
  { text: "-X KUBE-SEP-C", owner: null },
  { text: "COMMIT", owner: null },
];

function failure(code: number | null, stderr: string) {
  return restoreFailure("iptables-restore", { code, stdout: "", stderr }, () => input);
}

describe("10/50 a failed restore", () => {
  it.each([
    [
      "unknown option",
      2,
      'iptables-restore v1.8.9 (legacy): unknown option "--oops"\nError occurred at line: 3\nTry `iptables-restore -h\'',
      3,
    ],
    [
      "unknown option, nf_tables",
      2,
      'iptables-nft-restore v1.8.9 (nf_tables): unknown option "--oops"\nError occurred at line: 3\n',
      3,
    ],
    [
      "jump to a missing chain, legacy",
      2,
      "iptables-restore v1.8.9 (legacy): Couldn't load target `KUBE-SEP-B':No such file or directory\n\nError occurred at line: 4\n",
      4,
    ],
    [
      "jump to a missing chain, nf_tables",
      2,
      "iptables-nft-restore v1.8.9 (nf_tables): Chain 'KUBE-SEP-B' does not exist\nError occurred at line: 6\n",
      4,
    ],
    ["append to a missing chain, legacy", 1, "iptables-restore: line 3 failed\n", 3],
    [
      "append to a missing chain, nf_tables",
      1,
      "iptables-nft-restore: line 3 failed: No chain/target/match by that name.\n",
      3,
    ],
    [
      "missing counter, nf_tables",
      4,
      "iptables-nft-restore: line 4: RULE_APPEND failed (No such file or directory): rule in chain KUBE-SVC-A\n",
      4,
    ],
  ])("names the line and its Service: %s", (_, code, stderr, line) => {
    const error = failure(code, stderr);
    expect(error.kind).toBe("refused");
    expect(error.owners).toEqual(["shop/web/tcp/http"]);
    expect(error.message).toContain(`at line ${line}, \`${input[line - 1]!.text}\` (Service shop/web)`);
    expect(error.context[0]).toBe("1: *nat");
    expect(error.context).toContain(`${line}: ${input[line - 1]!.text}`);
  });

  it("finds all ServicePorts that need a module that this kernel lacks, on the legacy back end", () => {
    const lines: readonly InputLine[] = [
      { text: "*nat", owner: null },
      { text: "-A KUBE-SEP-A -m recent --name KUBE-SEP-A --set -m tcp -p tcp -j DNAT", owner: "shop/a/tcp/" },
      { text: "-A KUBE-SEP-B -m comment --comment shop/b -m tcp -p tcp -j DNAT", owner: "shop/b/tcp/" },
      { text: "-A KUBE-SVC-C -m recent --name KUBE-SEP-C --rcheck -j KUBE-SEP-C", owner: "shop/c/tcp/" },
      { text: "-A KUBE-POSTROUTING -m comment --comment snat -j MASQUERADE", owner: null },
      { text: "COMMIT", owner: null },
    ];
    const without = (name: string) => {
      const warning = `Warning: Extension ${name} revision 0 not supported, missing kernel module?`;
      const result = { code: 1, stdout: "", stderr: `${warning}\niptables-restore: line 6 failed\n` };
      return restoreFailure("iptables-restore", result, () => lines);
    };
    expect(without("recent").owners).toEqual(["shop/a/tcp/", "shop/c/tcp/"]);
    expect(without("recent").message).toContain("`COMMIT` (Service shop/a and 1 more)");
    expect(without("comment").owners).toEqual([]);
    expect(without("DNAT").owners).toEqual(["shop/a/tcp/", "shop/b/tcp/"]);
  });

  it("blames no Service for a chain in use", () => {
    const error = failure(
      4,
      "iptables-nft-restore: line 5: CHAIN_DEL failed (Device or resource busy): chain KUBE-SEP-C\n",
    );
    expect(error.owners).toEqual([]);
    expect(error.message).toContain("-X KUBE-SEP-C");
  });

  it("distinguishes a held lock and a killed program from a refusal", () => {
    const held = failure(
      4,
      "Another app is currently holding the xtables lock; still 1s 0us time ahead to have a chance to grab the lock...\n",
    );
    expect(held.kind).toBe("unavailable");
    expect(held.message).toContain("holding the xtables lock");
    const killed = failure(null, "");
    expect(killed.kind).toBe("lost");
    expect(killed.message).toBe("Cannot restore tables: iptables-restore was killed: no message");
  });
});
