// Every flow that a change makes stale is among those that are suspected after it.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { endpoint, ipv4Settings, routed, servicePort } from "../../test/support/routed.ts";
import type { ServicePort } from "../model/snapshot.ts";
import { GoneFrontends, type SuspectFlows, usesGoneFrontend } from "./gone-frontends.ts";
import type { Routes } from "./routes.ts";
import { isStale, type UdpFlow } from "./staleflows.ts";

const addresses = ["172.30.0.10", "172.30.0.11", "203.0.113.8", "192.168.0.2", "10.180.0.1"];
const pods = ["10.180.0.1", "10.180.0.2", "10.180.1.3"];
const ports = [53, 54];

describe("suspects", () => {
  it("include every flow that became stale, on 2,000 generated histories", () => {
    fc.assert(
      fc.property(fc.array(clusters(), { minLength: 2, maxLength: 6 }), (steps) => {
        const followed = new GoneFrontends();
        let before: Routes | null = null;
        let stale = new Set<UdpFlow>();
        for (const wanted of steps) {
          const now: Routes = routed(wanted, ipv4Settings, before);
          followed.note(now, now.changed);
          const suspects = followed.takeSuspects()!;
          const staleNow = flows.filter(
            (flow) => isStale(flow, now) || usesGoneFrontend(flow, followed.all, now),
          );
          const missed = staleNow.filter(
            (flow) => !stale.has(flow) && !suspects.some((each) => isIn(each, flow)),
          );
          expect(missed).toEqual([]);
          stale = new Set(staleNow);
          before = now;
        }
      }),
      { numRuns: 2000 },
    );
  });

  it("of 150,000 external IPs that are served for the first time are anywhere", () => {
    const externalIPs = Array.from(
      { length: 150_000 },
      (_, i) => `11.${i >> 16}.${(i >> 8) & 255}.${i & 255}`,
    );
    const idle = servicePort("shop/dns", { protocol: "udp", port: 53, externalIPs });
    const served = { ...idle, endpoints: [endpoint("10.180.0.1:53")] };
    const followed = new GoneFrontends();
    const before = routed([idle]);
    followed.note(before, before.changed);
    followed.takeSuspects();
    const now = routed([served], ipv4Settings, before);
    expect(followed.note(now, now.changed)).toBe(true);
    expect(followed.takeSuspects()).toBeNull();
  });

  it("are few after a small change, and put back after a search that was not completed", () => {
    const followed = new GoneFrontends();
    const before = routed([dns("10.180.0.1:53", "10.180.0.2:53")]);
    followed.note(before, before.changed);
    followed.takeSuspects();
    const now = routed([dns("10.180.0.1:53")], ipv4Settings, before);
    expect(followed.note(now, now.changed)).toBe(true);
    const gone = { kind: "answered by", address: "10.180.0.2", port: 53 };
    const suspects = followed.takeSuspects();
    expect(suspects).toEqual([gone]);
    expect(followed.takeSuspects()).toEqual([]);
    followed.suspect(suspects);
    followed.suspect(suspects);
    expect(followed.takeSuspects()).toEqual([gone]);
  });

  it("are anywhere after a thousand, until they are taken", () => {
    const followed = new GoneFrontends();
    const many = routed(
      Array.from({ length: 1001 }, (_, i) =>
        servicePort(`shop/s${i}`, { protocol: "udp", port: 53, clusterIP: `172.30.${i >> 8}.${i & 255}` }),
      ),
    );
    followed.note(many, many.changed);
    expect(followed.takeSuspects()).toBeNull();
    followed.suspect(null);
    expect(followed.takeSuspects()).toBeNull();
    expect(followed.takeSuspects()).toEqual([]);
  });
});

function dns(...at: readonly string[]): ServicePort {
  return servicePort("kube-system/dns", {
    protocol: "udp",
    port: 53,
    endpoints: at.map((each) => endpoint(each)),
  });
}

function isIn(suspect: SuspectFlows, flow: UdpFlow): boolean {
  const [address, port] =
    suspect.kind === "sent to"
      ? [flow.destination, flow.destinationPort]
      : [flow.replySource, flow.replySourcePort];
  return suspect.port === port && (suspect.address === null || suspect.address === address);
}

/** Every flow there can be: to each address and port, answered by each pod or not translated. */
const flows: readonly UdpFlow[] = addresses.flatMap((destination) =>
  [...ports, 30_053, 30_054].flatMap((destinationPort) =>
    [...pods, destination].flatMap((replySource) =>
      [...ports, destinationPort].map((replySourcePort) => ({
        destination,
        destinationPort,
        replySource,
        replySourcePort,
      })),
    ),
  ),
);

/** Services that compete for the same few addresses and node ports. */
function clusters(): fc.Arbitrary<readonly ServicePort[]> {
  const service = fc
    .record({
      name: fc.constantFrom("a", "b", "c"),
      protocol: fc.constantFrom("udp" as const, "udp" as const, "tcp" as const),
      port: fc.constantFrom(...ports),
      clusterIP: fc.constantFrom("172.30.0.10", "172.30.0.11"),
      externalIPs: fc.subarray(["203.0.113.8", "192.168.0.2"]),
      nodePort: fc.constantFrom(0, 30_053, 30_054),
      endpoints: fc.uniqueArray(
        fc.record({
          address: fc.constantFrom(...pods),
          port: fc.constantFrom(...ports),
          serving: fc.boolean(),
        }),
        { selector: ({ address, port }) => `${address}:${port}`, maxLength: 3 },
      ),
    })
    .map(({ name, endpoints, ...port }) =>
      servicePort(`shop/${name}`, {
        ...port,
        endpoints: endpoints.map((each) =>
          endpoint(`${each.address}:${each.port}`, { serving: each.serving }),
        ),
      }),
    );
  return fc.uniqueArray(service, { selector: ({ key }) => key, maxLength: 3 });
}
