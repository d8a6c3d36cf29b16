// Which back end is used where both are installed, and how many programs it takes to find out.
import { describe, expect, it } from "vitest";
import { backEndOf, detectBackEnd } from "./back-end.ts";
import { type Start, starter } from "./command.ts";

/** A machine on which these programs print this; all others cannot be run. */
function machine(printed: Readonly<Record<string, string>>) {
  const ran: string[] = [];
  const start: Start = (program, args) => {
    ran.push([program, ...args].join(" "));
    const stdout = printed[program];
    return {
      pid: undefined,
      finished:
        stdout === undefined
          ? Promise.reject(new Error("ENOENT"))
          : Promise.resolve({ code: 0, stdout, stderr: "" }),
    };
  };
  return { start, ran };
}

const legacyWithHint = {
  cat: "mangle\n",
  iptables: "iptables v1.8.9 (nf_tables)",
  "iptables-legacy": "iptables v1.8.9 (legacy)",
  "iptables-legacy-save": ":KUBE-KUBELET-CANARY - [0:0]\n",
};

describe("the back end", () => {
  it("is the one that the kubelet works on", async () => {
    const { start, ran } = machine(legacyWithHint);
    const detected = await detectBackEnd(start);
    expect(await backEndOf(detected, "iptables")).toBe("legacy");
    expect(ran.at(-1)).toBe("iptables-legacy --version");
  });

  it("is detected once for all parts of a process", async () => {
    const { start, ran } = machine(legacyWithHint);
    const first = await detectBackEnd(start);
    const programs = ran.length;
    expect(await detectBackEnd(start)).toBe(first);
    expect(ran.length).toBe(programs);
  });

  it("of a program is read once, unless it could not be run", async () => {
    const { start, ran } = machine({ iptables: "iptables v1.8.9 (nf_tables)" });
    for (let i = 0; i < 3; i++) expect(await backEndOf(start, "iptables")).toBe("nf_tables");
    for (let i = 0; i < 3; i++) expect(await backEndOf(start, "ip6tables")).toBeNull();
    expect(ran).toEqual(["iptables --version", ...Array(3).fill("ip6tables --version")]);
  });

  it("of our own network namespace is asked about by one starter", () => {
    expect(starter()).toBe(starter({}));
    expect(starter({ netns: "/run/netns/a" })).not.toBe(starter({ netns: "/run/netns/a" }));
  });
});
