// What ipvs mode needs of a machine before it starts, and how every trace of it is removed.

import { existsSync } from "node:fs";
import { release } from "node:os";
import type { ValidConfig } from "../../../config/config.ts";
import { milliseconds } from "../../../config/units/duration.ts";
import { HostError } from "../../../host/error.ts";
import { run, type Start, starter } from "../../../host/iptables/command.ts";
import { type IpvsHost, openIpvsHost } from "../../../host/ipvs/host.ts";
import { families } from "../../../model/address.ts";
import type { SysctlChange } from "../../../model/sysctl.ts";
import { printOperation } from "../../../plan/ipvs/print.ts";
import type { Operation, VirtualServer } from "../../../plan/ipvs/types.ts";
import { removeRules } from "../../iptables/host/setup.ts";
import { type Removed, removedOfIpvs, sumRemoved } from "../../removed.ts";
import { setSysctls } from "../../sysctls.ts";
import { hasConnections, ipvsRelease, ipvsRemoval, rulesRemoval } from "../removal.ts";
import { ipvsSysctls } from "../sysctls.ts";

type Place = { readonly netns?: string };

type PrepareReports = {
  readonly warn?: (what: string) => void;
  readonly sysctlChanged?: (change: SysctlChange) => void;
};

/** Checks the tools and the scheduler, then sets what the kernel needs. `warn` receives failures that do not stop the mode. */
export async function prepareIpvs(
  { ipvs }: Pick<ValidConfig, "ipvs">,
  { netns, warn, sysctlChanged }: Place & PrepareReports,
): Promise<void> {
  const place = netns === undefined ? {} : { netns };
  try {
    const start = starter(place);
    await requireIpset(start);
    const host = await openIpvsHost({ family: "ipv4", start, ...place });
    try {
      await requireScheduler(host, ipvs.scheduler || "rr");
      await setSysctls(ipvsSysctls(ipvs.strictARP, release()), netns, sysctlChanged);
      await setTimeouts(host, ipvs, warn);
    } finally {
      await host.close();
    }
  } catch (error) {
    if (!(error instanceof HostError)) throw error;
    throw new HostError(error.kind, `can't use the IPVS proxier: ${error.message}`, { cause: error });
  }
}

/** Sets of several addresses and ports came with ipset 6. */
export async function requireIpset(start: Start): Promise<void> {
  const { stdout } = await run(start, "ipset", ["--version"]);
  const [text, major] = /v(\d+)\.\d+/.exec(stdout) ?? [];
  if (text === undefined) {
    throw new HostError(
      "unavailable",
      `Cannot use ipset: its version is unknown: ${JSON.stringify(stdout.trim())}`,
    );
  }
  if (Number(major) < 6) {
    throw new HostError("unavailable", `ipset version: ${text} is less than min required version: 6.0`);
  }
}

/** Of a network for documentation: this address is unused. */
const probe = {
  address: "198.51.100.0",
  port: 20_000,
  protocol: "tcp",
  flags: 0,
  timeoutSeconds: 0,
} as const;

/** Some server with this scheduler is proof enough; else one is made, and deleted. */
export async function requireScheduler(host: IpvsHost, scheduler: string): Promise<void> {
  const { servers } = await host.read();
  if ([...servers.values()].some((server) => server.scheduler === scheduler)) return;
  const server: VirtualServer = { ...probe, scheduler };
  // One after the other: a server that an earlier probe left is set before it is deleted, and the error shows it.
  const added = await host.apply([{ kind: "add server", server }]);
  const deleted = await host.apply([{ kind: "delete server", server }]);
  const [failure] = [...added.failures, ...deleted.failures];
  if (failure !== undefined) {
    throw new HostError(
      "unavailable",
      `Cannot use scheduler ${JSON.stringify(scheduler)}: ${failure.reason}`,
    );
  }
}

/** In whole seconds; the kernel keeps its own value where there is none. */
export async function setTimeouts(
  host: Pick<IpvsHost, "setTimeouts">,
  ipvs: ValidConfig["ipvs"],
  warn: (what: string) => void = () => {},
): Promise<void> {
  const seconds = (nanoseconds: bigint) => Math.floor(milliseconds(nanoseconds) / 1000);
  const { tcpTimeout, tcpFinTimeout, udpTimeout } = ipvs;
  if (tcpTimeout + tcpFinTimeout + udpTimeout === 0n) return;
  const timeouts = { tcp: seconds(tcpTimeout), tcpFin: seconds(tcpFinTimeout), udp: seconds(udpTimeout) };
  try {
    await host.setTimeouts(timeouts);
  } catch (error) {
    if (!(error instanceof HostError)) throw error;
    warn(`IPVS time-outs stay as they are: ${error.message}`);
  }
}

/** Takes out rules, servers of ours, link and sets of both families; safe to repeat. */
export async function cleanUpIpvs(place: Place): Promise<Removed> {
  let removed: readonly Removed[] = [];
  const rules = await withHosts(place, async (hosts) => {
    // The link carries addresses of both families, which show which servers are ours.
    const states = await Promise.all(hosts.map((host) => host.read()));
    const removals = states.map(ipvsRemoval);
    await removeAll(hosts, removals);
    removed = states.map((state, i) => removedOfIpvs(state, removals[i]!));
  });
  return sumRemoved([rules, ...removed]);
}

/** The same, but what open connections need stays until they end. */
export async function releaseIpvs(place: Place): Promise<Removed | "draining"> {
  let isDraining = false;
  await withHosts(place, async (hosts) => {
    const states = await Promise.all(hosts.map((host) => host.read()));
    isDraining = states.some(hasConnections);
    await removeAll(hosts, states.map(isDraining ? ipvsRelease : ipvsRemoval));
  });
  return isDraining ? "draining" : {};
}

/** After the rules, which are counted, with a host for each family; none of it where the mode was never at work. */
async function withHosts(
  place: Place,
  work: (hosts: readonly IpvsHost[]) => Promise<void>,
): Promise<Removed> {
  // Where IPVS was never loaded there is nothing, and reading would load it.
  if (place.netns === undefined && !existsSync("/proc/net/ip_vs")) return {};
  const start = starter(place);
  // Without the program the mode never worked here.
  if (await isMissing(requireIpset(start))) return {};
  const rules = await removeRules(place, rulesRemoval);
  const hosts: IpvsHost[] = [];
  try {
    for (const family of families) hosts.push(await openIpvsHost({ family, start, ...place }));
    await work(hosts);
    return rules;
  } finally {
    for (const host of hosts) await host.close();
  }
}

async function isMissing(opened: Promise<void>): Promise<boolean> {
  try {
    await opened;
    return false;
  } catch (error) {
    if (error instanceof HostError && error.kind === "unavailable") return true;
    throw error;
  }
}

/** As much as can be, in each family: what is refused in one does not keep the other. */
export async function removeAll(
  hosts: readonly Pick<IpvsHost, "apply">[],
  removals: readonly (readonly Operation[])[],
): Promise<void> {
  const reasons: string[] = [];
  for (const [i, operations] of removals.entries()) {
    const { failures } = await hosts[i]!.apply(operations);
    reasons.push(
      ...failures.map(({ operation, reason }) => `${printOperation(operations[operation]!)}: ${reason}`),
    );
  }
  if (reasons.length > 0)
    throw new HostError("refused", `Cannot remove everything of ipvs mode: ${reasons.join("; ")}`);
}
