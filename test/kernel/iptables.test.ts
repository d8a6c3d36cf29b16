import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Start, starter } from "../../src/host/iptables/command.ts";
import { type IptablesHost, openIptablesHost } from "../../src/host/iptables/host.ts";
import { RestoreFailed } from "../../src/host/iptables/refusal.ts";
import type { ServicePort } from "../../src/model/snapshot.ts";
import { compile } from "../../src/modes/iptables/compile.ts";
import { removal } from "../../src/modes/iptables/removal.ts";
import { adopt } from "../../src/plan/iptables/adopt.ts";
import { diff } from "../../src/plan/iptables/diff.ts";
import { print } from "../../src/plan/iptables/print.ts";
import type { IptablesPatch, IptablesPlan, Rule } from "../../src/plan/iptables/types.ts";
import { type Routes, route } from "../../src/routing/routes.ts";
import { servicePort as anyPort, settings as anySettings, snapshotOf } from "../clusters.ts";
import { dns, front, local, web } from "../support/front-and-web.ts";
import { endpoint, ipv4Settings, ipv6Settings, routed, servicePort } from "../support/routed.ts";
import { createNamespace, isRoot, type Namespace } from "./netns.ts";

const counters = { invalidDropped: false, localhostNodePorts: false };

describe.runIf(isRoot).each(["nf_tables", "legacy"] as const)("iptables mode on %s", (backEnd) => {
  let here: Namespace;
  let commands: string[];
  let start: Start;
  beforeEach(() => {
    here = createNamespace();
    commands = [];
    const onMachine = starter({ netns: here.path });
    start = (program, args, input, signal) => {
      commands.push([program, ...args].join(" "));
      return onMachine(program.replace(/^(ip6?tables)/, named(backEnd)), args, input, signal);
    };
  });
  afterEach(() => here.remove());

  /** Lines of the listing that are not about the built-in chains' policies. */
  function listed(family: "ipv4" | "ipv6" = "ipv4"): string[] {
    const program = `${named(backEnd).replace("$1", family === "ipv4" ? "iptables" : "ip6tables")}-save`;
    return here
      .run(program)
      .split("\n")
      .filter((line) => /^(-A|:KUBE|:FOREIGN)/.test(line))
      .map((line) => line.replace(/ \[\d+:\d+\]$/, " [0:0]"));
  }

  function printed(plan: IptablesPlan): string[] {
    return print(plan)
      .split("\n")
      .filter((line) => /^(-A|:KUBE)/.test(line));
  }

  const open = (family: "ipv4" | "ipv6" = "ipv4"): Promise<IptablesHost> => openIptablesHost(family, start);

  async function bring(host: IptablesHost, plan: IptablesPlan): Promise<IptablesPatch> {
    const patch = adopt(await host.read(), plan);
    await host.apply(patch);
    return patch;
  }

  it("10/5 10/62 the listing of a fresh host is what the Plan prints, in both families", async () => {
    const host = await open();
    expect(host.backEnd).toBe(backEnd);
    const plan = compile(null, routed([web, front, dns]), counters);
    await bring(host, plan);
    expect(listed().sort()).toEqual(printed(plan).sort());
    const inFilter = (lines: readonly string[]) =>
      lines.filter((line) => /^-A (INPUT|FORWARD|OUTPUT) /.test(line) && !/^-A OUTPUT -m comment/.test(line));
    expect(inFilter(listed())).toEqual(inFilter(printed(plan)));
    const six = compile(
      null,
      routed(
        [
          servicePort("shop/six", {
            family: "ipv6",
            clusterIP: "fd00:30::1",
            affinity: { seconds: 5 },
            endpoints: [endpoint("[fd00:1::1]:80")],
          }),
        ],
        ipv6Settings,
      ),
      counters,
    );
    await bring(await open("ipv6"), six);
    expect(listed("ipv6").sort()).toEqual(printed(six).sort());
  });

  it("a start over rules that are right reads once and writes nothing", async () => {
    const host = await open();
    const plan = compile(null, routed([web, front, dns]), counters);
    await bring(host, plan);
    commands.length = 0;
    expect((await bring(host, plan)).steps).toEqual([]);
    expect(commands).toEqual(["iptables-save"]);
  });

  it("10/7 10/8 a change is one restore and nothing else", async () => {
    const host = await open();
    const before = routed([web, front]);
    const have = compile(null, before, counters);
    await bring(host, have);
    const moved = { ...web, endpoints: [local, endpoint("10.180.1.9:8443")] };
    const want = compile(have, routed([moved, front, dns], ipv4Settings, before), counters);
    commands.length = 0;
    await host.apply(diff(have, want, want.changed));
    expect(commands).toEqual(["iptables-restore -w 5 --noflush --counters"]);
    expect(adopt(await host.read(), want).steps).toEqual([]);
  });

  it("10/6 10/9 10/43 foreign chains and rules survive, stale chains of ours do not, jumps are not doubled", async () => {
    const host = await open();
    const tool = named(backEnd).replace("$1", "iptables");
    for (const command of [
      `${tool} -w -t nat -N FOREIGN`,
      `${tool} -w -t nat -A FOREIGN -p tcp --dport 1 -j DNAT --to-destination 10.9.9.9:1`,
      `${tool} -w -t nat -A PREROUTING -j FOREIGN`,
      `${tool} -w -A FORWARD -s 10.1.2.3 -j DROP`,
      `${tool} -w -t nat -N KUBE-FOO`,
      `${tool} -w -t nat -N KUBE-SVC-STALE`,
      `${tool} -w -t mangle -N KUBE-KUBELET-CANARY`,
      `${tool} -w -t mangle -N KUBE-IPTABLES-HINT`,
    ]) {
      here.run("sh", "-c", command);
    }
    const foreign = listed().filter((line) => !line.includes("STALE"));
    const plans = [[web], [web, front], [front, dns], [], [dns]].map((ports) =>
      compile(null, routed(ports), counters),
    );
    for (const plan of [...plans, ...plans]) {
      await bring(host, plan);
      const ours = new Set(printed(plan));
      expect(
        listed()
          .filter((line) => !ours.has(line))
          .sort(),
      ).toEqual(foreign.sort());
      expect(listed()).toHaveLength(foreign.length + printed(plan).length);
    }
  });

  it("10/53 clean-up leaves foreign rules, the kubelet's chains, and the firewall chain it shares", async () => {
    const host = await open();
    const tool = named(backEnd).replace("$1", "iptables");
    here.run(
      "sh",
      "-c",
      `${tool} -w -A FORWARD -s 10.1.2.3 -j DROP; ${tool} -w -t mangle -N KUBE-KUBELET-CANARY`,
    );
    const foreign = listed();
    await bring(host, compile(null, routed([web, front, dns]), counters));
    await host.apply(removal(await host.read()));
    expect(listed().sort()).toEqual(
      [
        ...foreign,
        ":KUBE-FIREWALL - [0:0]",
        '-A KUBE-FIREWALL ! -s 127.0.0.0/8 -d 127.0.0.0/8 -m comment --comment "block incoming localnet connections" -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP',
        "-A INPUT -j KUBE-FIREWALL",
        "-A OUTPUT -j KUBE-FIREWALL",
      ].sort(),
    );
    expect(removal(await host.read()).steps).toEqual([]);
  });

  it("10/49 10/50 a refused line is named with its Service; tables before it are in force, and a retry succeeds", async () => {
    const host = await open();
    const plan = compile(null, routed([web, dns]), counters);
    const nowhere: Rule = { match: [], target: { kind: "jump", chain: "KUBE-SEP-NOWHERE" } };
    const patch = adopt(await host.read(), plan);
    const broken: IptablesPatch = {
      ...patch,
      steps: patch.steps.map((step) => ({
        ...step,
        write: step.write.map((chain) =>
          chain.name === "KUBE-SVC-67NZLRHBNDSAWJRO" ? { ...chain, rules: [...chain.rules, nowhere] } : chain,
        ),
      })),
    };
    const failure = (await host.apply(broken).then(
      () => null,
      (error: unknown) => error,
    )) as RestoreFailed;
    expect(failure).toBeInstanceOf(RestoreFailed);
    expect(failure.kind).toBe("refused");
    expect(failure.message).toContain("-j KUBE-SEP-NOWHERE");
    expect(failure.owners).toEqual(["shop/web/tcp/http"]);
    expect(failure.context.join("\n")).toContain("KUBE-SEP-NOWHERE");
    expect(listed().some((line) => line.includes("shop/dns:dns has no endpoints"))).toBe(true);
    await bring(host, plan);
    expect(listed().sort()).toEqual(printed(plan).sort());
  });

  it("10/59 session affinity survives when everything is rewritten", async () => {
    const host = await open();
    const plan = compile(null, routed([front]), counters);
    await bring(host, plan);
    const list = /--name (KUBE-SEP-\S+)/.exec(listed().join("\n"))![1]!;
    here.run("sh", "-c", `echo +203.0.113.5 > /proc/net/xt_recent/${list}`);
    const all: IptablesPatch = adopt({ family: "ipv4", tables: new Map() }, plan);
    await host.apply({ ...all, steps: all.steps.map((step) => ({ ...step, prepend: [] })) });
    expect(here.run("cat", `/proc/net/xt_recent/${list}`)).toContain("203.0.113.5");
  });

  it("reaches step by step in the kernel what it builds from scratch", async () => {
    const history = fc.array(
      fc.array(fc.tuple(anyPort("ipv4"), fc.boolean()), { minLength: 1, maxLength: 3 }),
      {
        minLength: 3,
        maxLength: 6,
      },
    );
    await fc.assert(
      fc.asyncProperty(anySettings("ipv4"), history, async (settings, steps) => {
        const host = await open();
        await host.apply(removal(await host.read()));
        const ports = new Map<string, ServicePort>();
        let routes: Routes | null = null;
        let applied: IptablesPlan | null = null;
        for (const step of steps) {
          const changed = new Set(step.map(([port]) => port.key));
          for (const [port, remove] of step) {
            if (remove) ports.delete(port.key);
            else ports.set(port.key, port);
          }
          const snapshot = snapshotOf([...ports.values()], "ipv4", changed);
          routes = route(routes, snapshot, settings);
          const want: IptablesPlan = compile(applied, routes, counters);
          await host.apply(
            applied === null ? adopt(await host.read(), want) : diff(applied, want, want.changed),
          );
          applied = want;
          const scratch = compile(null, route(null, snapshot, settings), counters);
          expect(adopt(await host.read(), scratch).steps).toEqual([]);
        }
      }),
      { numRuns: 8 },
    );
  });
});

function named(backEnd: "nf_tables" | "legacy"): string {
  return backEnd === "nf_tables" ? "$1-nft" : "$1-legacy";
}
