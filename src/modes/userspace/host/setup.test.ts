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
    expect(ran.filter((program) => /^ip6?tables$/.test(program))).toEqual(["iptables", "ip6tables"]);
  });

  it("reads tables that have them", async () => {
    const { ran, start } = hostWith("KUBE-PORTALS-CONTAINER");
    await releaseUserspace({ start });
    expect(ran).toContain("iptables-save");
    expect(ran).toContain("ip6tables-save");
  });
});
