// Which families are usable, and the reason when one is not.
import { expect, it } from "vitest";
import { HostError } from "../error.ts";
import type { Start } from "./command.ts";
import { usableFamilies } from "./probe.ts";

const answering =
  (codes: Readonly<Record<string, number | "missing">>): Start =>
  (program) => {
    const code = codes[program]!;
    const finished =
      code === "missing"
        ? Promise.reject(new HostError("unavailable", `Cannot run ${program}: ENOENT`))
        : Promise.resolve({ code, stdout: "", stderr: "no such table" });
    return { pid: 1, finished };
  };

const files = (disabled: string) => (file: string) => {
  if (file.endsWith("if_inet6")) return "";
  return disabled;
};

it("both are usable where both programs work", async () => {
  const usable = await usableFamilies(answering({ iptables: 0, ip6tables: 0 }), files("0\n"));
  expect(usable.map(({ reason }) => reason)).toEqual([null, null]);
});

it("returns the reason", async () => {
  const [ipv4, ipv6] = await usableFamilies(answering({ iptables: 3, ip6tables: "missing" }), files("0\n"));
  expect(ipv4!.reason).toBe("iptables exited with 3: no such table");
  expect(ipv6!.reason).toBe("Cannot run ip6tables: ENOENT");
  const off = await usableFamilies(answering({ iptables: 0, ip6tables: 0 }), files("1\n"));
  expect(off[1]!.reason).toBe("IPv6 is off in this kernel");
});

it("treats IPv6 as enabled where the setting cannot be read, and off where the kernel has none", async () => {
  const unreadable = (missing: string) => (file: string) => {
    if (file.includes(missing)) throw new Error("ENOENT");
    return "0";
  };
  const both = answering({ iptables: 0, ip6tables: 0 });
  expect((await usableFamilies(both, unreadable("disable_ipv6")))[1]!.reason).toBeNull();
  expect((await usableFamilies(both, unreadable("if_inet6")))[1]!.reason).toBe("IPv6 is off in this kernel");
});
