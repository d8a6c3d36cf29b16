// Userspace mode as users run it: the daemon's relays and rules on a node among pods, clients and other programs.
import { describe, expect, it } from "vitest";
import { families, joinHostPort } from "../../src/model/address.ts";
import { inFamily, places } from "../places.ts";
import { readScenario } from "../scenarios.ts";
import { daemonAmongPods } from "./among-pods.ts";
import { readFlows } from "./flows.ts";
import { type Probe, send } from "./probe.ts";
import { type Daemon, eventually, sampleOf } from "./site.ts";

const objects = ["node-port", "udp-flows"].flatMap((name) => readScenario(name).objects);
const chains = /KUBE-(PORTALS|NODEPORT)-\w+/;

describe("userspace mode", () => {
  const node = daemonAmongPods(objects);
  const { saved, stop } = node;
  const started = (more: Readonly<Record<string, unknown>> = {}) =>
    node.started({ mode: "userspace", ...more });

  const repaired = async (daemon: Daemon) =>
    sampleOf(await daemon.metrics(), 'turnout_drift_repaired_total{ip_family="IPv4"}');

  /** The result of one packet to this address, in each family. */
  async function met(from: Probe["from"]["kind"], address: string, target: string): Promise<string[]> {
    const [place, rest] = [
      target.slice(0, target.lastIndexOf(":")),
      target.slice(target.lastIndexOf(":") + 1),
    ];
    const [port, protocol] = rest.split("/") as [string, "tcp" | "udp"];
    const probes = families.map(
      (family): Probe => ({
        from: { kind: from, address: inFamily(address, family) },
        to: { address: inFamily(place, family), port: Number(port), protocol },
      }),
    );
    return (await Promise.all(probes.map((probe) => send(node.world, probe, 1)))).flat();
  }

  it("21/8 serves ClusterIPs and NodePorts by TCP and UDP to pods, the node and the outside", async () => {
    await started();
    const senders = [
      ["pod", places.L2],
      ["node", places.host],
      ["outside", places.X],
    ] as const;
    const targets = [
      "172.30.0.25:80/tcp",
      "172.30.0.85:80/udp",
      "192.168.0.2:30025/tcp",
      "192.168.0.2:30085/udp",
    ];
    for (const target of targets) {
      for (const [kind, address] of senders) {
        const seen = await met(kind, address, target);
        expect(seen.map((sight) => `${target} ${kind} ${sight}`)).toEqual([
          expect.stringMatching(/10\.180\.\d\.1:8080 masquerade$/),
          expect.stringMatching(/fd00:180:.*:8080 masquerade$/),
        ]);
      }
    }
    expect((await met("node", "127.0.0.1", "127.0.0.1:30025/tcp")).join()).toMatch(/10\.180.* masquerade/);
  });

  it.each([
    ["ipv4", "iptables"],
    ["ipv6", "ip6tables"],
  ] as const)("security/7: relays answer only what was redirected to them, %s", async (family, tool) => {
    const daemon = await started();
    const listing = node.site.netns.run(`${tool}-save`);
    const redirect = /-A KUBE-PORTALS-CONTAINER -d \S+ -p (tcp|udp) .*--to-ports (\d+)/g;
    const relays = new Map([...listing.matchAll(redirect)].map(([, protocol, port]) => [port!, protocol!]));
    expect(new Set(relays.values())).toEqual(new Set(["tcp", "udp"]));
    const senders = [
      ["outside", places.X],
      ["pod", places.L2],
      ["node", places.host],
    ] as const;
    const directly = () =>
      Promise.all(
        [...relays].flatMap(([port, protocol]) =>
          senders.map(([kind, from]) =>
            send(
              node.world,
              {
                from: { kind, address: inFamily(from, family) },
                to: {
                  address: inFamily(places.host, family),
                  port: Number(port),
                  protocol: protocol as "tcp" | "udp",
                },
              },
              1,
            ),
          ),
        ),
      );
    expect(new Set((await directly()).flat())).toEqual(new Set(["drop"]));
    // A jump that another program deleted comes back on top of the others, and opens nothing.
    const repairs = async () =>
      sampleOf(
        await daemon.metrics(),
        `turnout_drift_repaired_total{ip_family="${family === "ipv4" ? "IPv4" : "IPv6"}"}`,
      );
    const before = await repairs();
    node.site.netns.run(tool, "-D", "INPUT", "2");
    await eventually(async () => (await repairs()) > before, "the jump");
    expect(new Set((await directly()).flat())).toEqual(new Set(["drop"]));
  });

  it("behaviour/4: SCTP that it cannot serve is in the log and in the metrics, until it is gone", async () => {
    const daemon = await started();
    const problems = async () => sampleOf(await daemon.metrics(), 'turnout_problems{kind="unserved"}');
    await expect.poll(problems).toBeGreaterThan(0);
    expect(daemon.log()).toMatch(
      /^E.*"Object is not as expected".*no relays for SCTP.*object="Service node-port\//m,
    );
    expect(await daemon.health()).toMatchObject({ status: 200 });
    for (const { namespace, name } of sctpServices()) node.site.api.remove("Service", namespace, name);
    await expect.poll(problems).toBe(0);
  });

  it("21/6 restores a deleted rule and a deleted jump, once", async () => {
    const daemon = await started();
    const whole = sorted(saved());
    for (const chain of ["PREROUTING", "KUBE-PORTALS-CONTAINER"]) {
      const before = await repaired(daemon);
      // From now on the daemon may repair at any moment.
      node.site.netns.run("iptables", "-t", "nat", "-D", chain, "1");
      await eventually(async () => (await repaired(daemon)) > before, `a repair of ${chain}`);
      await eventually(() => sorted(saved()).join() === whole.join(), `the rules of ${chain}`);
    }
  });

  it("reopens relays whose sockets the kernel aborted", async () => {
    const daemon = await started({ iptables: { syncPeriod: "3s" } });
    const targets = ["172.30.0.25:80/tcp", "172.30.0.85:80/udp", "192.168.0.2:30085/udp"];
    const served = async () => (await Promise.all(targets.map((to) => met("pod", places.L2, to)))).flat();
    const isServed = async () => (await served()).every((sight) => sight.endsWith(":8080 masquerade"));
    expect(await isServed()).toBe(true);
    const relays = new Set([...saved().matchAll(/--to-ports (\d+)/g)].map(([, port]) => port));
    const process = `pid=${daemon.pid},`;
    const listeners = () =>
      node.site.netns
        .run("ss", "-Htulnp")
        .split("\n")
        .filter((line) => line.includes(process));
    const count = listeners().length;
    const before = await repaired(daemon);
    // Its sockets for health and metrics are none of this.
    for (const port of [...relays, "30025", "30085"])
      node.site.netns.run("ss", "-K", "-tuln", `sport = :${port}`);
    await eventually(async () => (await repaired(daemon)) > before, "a repair", 30_000);
    await eventually(() => listeners().length === count, "all sockets", 30_000);
    await eventually(isServed, "all Services", 30_000);
  });

  it("21/7 21/4 starts over its own rules with other ports, and flows of the process before find them", async () => {
    const daemon = await started({ portRange: "45000-45999" });
    const ports = () => new Set([...saved().matchAll(/--to-ports (\d+)/g)].map(([, port]) => Number(port)));
    expect([...ports()].every((port) => port >= 45_000 && port <= 45_999)).toBe(true);
    await met("outside", places.X, "192.168.0.2:30085/udp");
    await stop(daemon);
    await started({ portRange: "46000-46999" });
    expect([...ports()].every((port) => port >= 46_000 && port <= 46_999)).toBe(true);
    const old = readFlows(node.world.node).filter(
      ({ answerFrom }) => answerFrom.port >= 45_000 && answerFrom.port < 46_000,
    );
    expect(old.filter(({ to }) => to.port === 30_085)).toEqual([]);
  });

  it("21/19 deletes the flows of a deleted UDP Service, and no others", async () => {
    await started();
    await met("pod", places.L2, "172.30.0.85:80/udp");
    await met("outside", places.X, "172.30.0.85:80/udp");
    const flows = () =>
      readFlows(node.world.node).filter(({ to }) => joinHostPort(to.address, to.port) === "172.30.0.85:80");
    expect(flows().length).toBeGreaterThan(0);
    node.site.api.remove("Service", "udp-flows", "web");
    await eventually(() => !saved().includes("172.30.0.85"), "the rules to go");
    await eventually(() => flows().length === 0, "the flows to go");
  });

  it("21/22 leaves nothing after --cleanup, twice, and nothing in other modes", async () => {
    await stop(await started());
    expect(saved()).toMatch(chains);
    for (const _ of [1, 2]) {
      expect(await node.site.finish({ args: ["--cleanup"] })).toMatchObject({ code: 0 });
      expect(saved()).not.toMatch(chains);
    }
    await stop(await started());
    const daemon = node.site.start({ config: { mode: "iptables" } });
    await daemon.ready();
    await eventually(() => !chains.test(saved()), "the rules of userspace mode to go");
  });

  it("21/1 refuses to listen on loopback", async () => {
    const { code, log } = await node.site.finish({ config: { mode: "userspace", bindAddress: "127.0.0.1" } });
    expect(code).toBe(1);
    expect(log).toContain("cannot proxy on localhost");
  });
});

function sctpServices(): { readonly namespace: string; readonly name: string }[] {
  return objects
    .filter((object) => object.kind === "Service" && JSON.stringify(object).includes('"SCTP"'))
    .map(({ metadata }) => metadata as { namespace: string; name: string });
}

/** Without counters and comments of the listing. */
function sorted(listing: string): string[] {
  return listing
    .split("\n")
    .filter((line) => line.startsWith("-A"))
    .sort();
}
