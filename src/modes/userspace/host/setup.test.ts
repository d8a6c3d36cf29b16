// Removal of what userspace mode left, at the start of another mode: which programs it takes.
import { describe, expect, it } from "vitest";
import type { Start } from "../../../host/iptables/command.ts";
import { releaseUserspace } from "./setup.ts";

/** A host on which these chains exist. */
function hostWith(...chains: readonly string[]) {
  const ran: string[] = [];
  const start: Start = (program, args) => {
    ran.push(program);
    const isMissing = args.includes("-S") && !args.some((arg) => chains.includes(arg));
    const stdout = args.includes("--version") ? "iptables v1.8.9 (nf_tables)" : "";
    return { pid: 1, finished: Promise.resolve({ code: isMissing ? 1 : 0, stdout, stderr: "" }) };
  };
  return { ran, start };
}

describe("release of userspace mode", () => {
  it("does not read tables without its chains: those of a large cluster take seconds", async () => {
    const { ran, start } = hostWith();
    expect(await releaseUserspace({ start })).toEqual({});
    expect(ran.filter((program) => /^ip6?tables-save$/.test(program))).toEqual([]);
    const asked = ran.filter((program) => /^ip6?tables$/.test(program));
    expect(
      Map.groupBy(asked, (program) => program)
        .keys()
        .toArray(),
    ).toEqual(["iptables", "ip6tables"]);
  });

  it.each([
    "KUBE-PORTALS-CONTAINER",
    "KUBE-NODEPORT-NON-LOCAL",
    // Alone it is left by kube-proxy 1.25, which removes those that it knows.
    "KUBE-PORTALS-FIREWALL",
  ])("reads tables that have %s", async (chain) => {
    const { ran, start } = hostWith(chain);
    await releaseUserspace({ start });
    expect(ran).toContain("iptables-save");
    expect(ran).toContain("ip6tables-save");
  });
});
