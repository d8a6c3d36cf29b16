// Packets and bytes from conntrack in a real kernel: events that were lost are reported as unknown, and never counted as zero.
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { nftablesBehavior } from "../../src/modes/nftables/behavior.ts";
import { FlowAccounts } from "../../src/observe/traffic/flow-accounts.ts";
import { endpoint, routed, servicePort } from "../support/routed.ts";
import { insertFlows } from "./insert-flows.ts";
import { createNamespace, type Namespace, reasonToSkip } from "./netns.ts";

const dns = servicePort("kube-system/dns", {
  protocol: "udp",
  port: 53,
  clusterIP: "172.30.0.10",
  endpoints: [endpoint("10.0.1.5:53")],
});

/** More events than the socket's buffer holds. */
const flows = 60_000;

describe.skipIf(reasonToSkip() !== null)("accounts of flows", () => {
  let netns: Namespace;
  let accounts: FlowAccounts;
  let now = 1000;
  const stop = new AbortController();

  beforeEach(async () => {
    netns = createNamespace("accounts");
    netns.sysctl({ "net.netfilter.nf_conntrack_acct": 1, "net.netfilter.nf_conntrack_events": 1 });
    accounts = new FlowAccounts({
      behavior: nftablesBehavior,
      conntrack: "shared",
      endpoints: true,
      place: { netns: netns.path },
      now: () => ({ wall: now, steady: now }),
    });
    accounts.setRoutes(routed([dns]));
    await accounts.watch(stop.signal);
    await accounts.dump(stop.signal);
  });

  afterEach(() => {
    stop.abort();
    netns.remove();
  });

  it("have the active flows of a Service and of its endpoint, and report what the kernel could not send", async () => {
    await insertFlows(netns, flows);
    now = 2000;
    await accounts.dump(stop.signal);
    expect(accounts.of("ipv4", "kube-system/dns/udp/")).toMatchObject({ active: flows });
    expect(accounts.of("ipv4", "kube-system/dns/udp/ 10.0.1.5:53")).toMatchObject({ active: flows });
    expect(accounts.gaps).toEqual([]);
    // Nothing is received while this program runs.
    netns.run("conntrack", "-F");
    now = 3000;
    const gaps = async () => {
      await accounts.dump(stop.signal);
      return accounts.gaps;
    };
    await expect.poll(gaps).toEqual([{ from: 2000, to: 3000 }]);
    expect(accounts.of("ipv4", "kube-system/dns/udp/")).toMatchObject({ active: 0 });
    now = 4000;
    expect(await gaps()).toEqual([{ from: 2000, to: 3000 }]);
  }, 120_000);
});
