// What ipvs mode requires of a machine before it starts, and its errors.
import { describe, expect, it } from "vitest";
import { completeConfig } from "../../../config/complete.ts";
import type { ValidConfig } from "../../../config/config.ts";
import { HostError } from "../../../host/error.ts";
import type { Start } from "../../../host/iptables/command.ts";
import { MemoryIpvsHost } from "../../../host/ipvs/memory.ts";
import { eventReasons } from "../../../observe/events/event.ts";
import { printOperation } from "../../../plan/ipvs/print.ts";
import type { Operation } from "../../../plan/ipvs/types.ts";
import { modes } from "../../index.ts";
import { removeAll, requireIpset, requireScheduler, setTimeouts } from "./setup.ts";

const printing =
  (stdout: string): Start =>
  () => ({ pid: undefined, finished: Promise.resolve({ code: 0, stdout, stderr: "" }) });

describe("ipset", () => {
  it.each([
    "ipset v6.0, protocol version: 6",
    "ipset v7.17, protocol version: 7",
    "ipset v10.1, protocol version: 7",
  ])("20/5 %s is new enough", async (version) => {
    await expect(requireIpset(printing(version))).resolves.toBeUndefined();
  });

  it("20/5 is refused when it is too old, missing, or something else", async () => {
    await expect(requireIpset(printing("ipset v5.9, protocol version: 4"))).rejects.toThrow(
      "ipset version: v5.9 is less than min required version: 6.0",
    );
    await expect(requireIpset(printing("hello"))).rejects.toThrow(
      'Cannot use ipset: its version is unknown: "hello"',
    );
    const missing: Start = () => ({
      pid: undefined,
      finished: Promise.reject(new HostError("unavailable", "Cannot run ipset: ENOENT")),
    });
    await expect(requireIpset(missing)).rejects.toThrow("Cannot run ipset: ENOENT");
  });
});

describe("the scheduler", () => {
  it("20/6 is tried on a server with an unused address, which is deleted again", async () => {
    const host = new MemoryIpvsHost("ipv4");
    await requireScheduler(host, "rr");
    expect(host.applied.flat().map(printOperation)).toEqual([
      "add server 198.51.100.0:20000/TCP",
      "delete server 198.51.100.0:20000/TCP",
    ]);
    expect((await host.read()).servers.size).toBe(0);
  });

  it("20/6 is not tried where some server has it, and an unknown one ends the start", async () => {
    const host = new MemoryIpvsHost("ipv4");
    const server = {
      address: "10.9.9.9",
      port: 1,
      protocol: "tcp",
      scheduler: "lc",
      flags: 0,
      timeoutSeconds: 0,
    } as const;
    await host.apply([{ kind: "add server", server }]);
    await requireScheduler(host, "lc");
    expect(host.applied).toHaveLength(1);
    await expect(requireScheduler(host, "nonsense")).rejects.toThrow(
      /Cannot use scheduler "nonsense": .*ENOENT/,
    );
    expect((await host.read()).servers.size).toBe(1);
  });
});

describe("time-outs", () => {
  const ms = 1_000_000n;
  const ipvsOf = (timeouts: Partial<ValidConfig["ipvs"]>) => {
    const completed = completeConfig({ "proxy-mode": "ipvs" }, null);
    if (!completed.ok) throw new Error(completed.error);
    return { ...completed.config.ipvs, ...timeouts };
  };

  it.each([
    [{}, null],
    [
      { tcpTimeout: 100_000n * ms, udpTimeout: 7000n * ms },
      { tcp: 100, tcpFin: 0, udp: 7 },
    ],
    [{ tcpTimeout: 500n * ms }, { tcp: 0, tcpFin: 0, udp: 0 }],
    [
      { tcpTimeout: 1900n * ms, tcpFinTimeout: 120_000n * ms },
      { tcp: 1, tcpFin: 120, udp: 0 },
    ],
  ])(
    "20/4 number %#: whole seconds, 0 leaves the kernel's, and without any nothing is set",
    async (given, timeouts) => {
      const host = new MemoryIpvsHost("ipv4");
      await setTimeouts(host, ipvsOf(given));
      expect(host.timeouts).toEqual(timeouts);
    },
  );

  it("20/4 that the kernel refuses are reported, and do not end the start", async () => {
    const host = new MemoryIpvsHost("ipv4");
    host.breakDown("Cannot set time-outs: EINVAL");
    const reported: string[] = [];
    await setTimeouts(host, ipvsOf({ tcpTimeout: 100_000n * ms }), (what) => reported.push(what));
    expect(reported).toEqual(["IPVS time-outs stay as they are: Cannot set time-outs: EINVAL"]);
  });
});

describe("clean-up", () => {
  it("goes on in the other family, and with everything else, where something is refused", async () => {
    const [four, six] = [new MemoryIpvsHost("ipv4"), new MemoryIpvsHost("ipv6")];
    const set = (name: string, family: "ipv4" | "ipv6") =>
      ({ kind: "create set", set: { name, type: "hash:ip", family } }) as const;
    await four.apply([{ kind: "add link" }, set("KUBE-A", "ipv4"), set("KUBE-B", "ipv4")]);
    await six.apply([set("KUBE-6-A", "ipv6")]);
    four.pin("KUBE-A");
    const removal = (...sets: readonly string[]): Operation[] =>
      sets.map((name) => ({ kind: "destroy set", set: name }));
    await expect(removeAll([four, six], [removal("KUBE-A", "KUBE-B"), removal("KUBE-6-A")])).rejects.toThrow(
      "Cannot remove everything of ipvs mode: destroy set KUBE-A: Set cannot be destroyed: it is in use",
    );
    expect([...(await four.read()).sets.keys()]).toEqual(["KUBE-A"]);
    expect((await six.read()).sets.size).toBe(0);
  });
});

describe("the end of ipvs mode", () => {
  it("20/7 is announced at every start, as a Warning about the Node", () => {
    expect(modes.ipvs.deprecation).toEqual({
      reason: "IPVSDeprecation",
      text: "The ipvs proxier has been deprecated and will be disabled by default in Kubernetes 1.40 and removed in Kubernetes 1.43. Migrate to the 'nftables' proxier instead.",
    });
    expect(eventReasons.IPVSDeprecation).toEqual({ type: "Warning", action: "StartKubeProxy" });
  });

  it("20/7 can be had today: without its gate the mode is refused", () => {
    const without = completeConfig({ "proxy-mode": "ipvs", "feature-gates": { KubeProxyIPVS: false } }, null);
    expect(without).toMatchObject({ ok: false, error: expect.stringContaining("KubeProxyIPVS") });
  });
});
