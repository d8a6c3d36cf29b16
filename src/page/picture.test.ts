// The picture of a Service agrees with `explain`: every share, exclusion and reason comes from the same Trace.
import fc from "fast-check";
import { expect, it } from "vitest";
import { snapshotOf as familySnapshot, servicePort, settings } from "../../test/clusters.ts";
import { endpoint, ipv6Settings, routed, servicePort as smallPort } from "../../test/support/routed.ts";
import { parseFrom, parseTo } from "../explain/question.ts";
import { questionOf, type Sender } from "../explain/resolve.ts";
import { trace } from "../explain/trace.ts";
import { type Family, families } from "../model/address.ts";
import { atOnce } from "../model/steps.ts";
import { modes } from "../modes/index.ts";
import { route } from "../routing/routes.ts";
import { pictureOf } from "./picture.ts";

const twoFamilies = <T>(make: (family: Family) => fc.Arbitrary<T>) =>
  fc.record({ ipv4: make("ipv4"), ipv6: make("ipv6") });

it.each(["nftables", "iptables", "ipvs", "userspace"] as const)("in %s mode", (mode) => {
  let compared = 0;
  fc.assert(
    fc.property(
      twoFamilies((family) => fc.array(servicePort(family), { minLength: 1, maxLength: 5 })),
      twoFamilies(settings),
      (ports, places) => {
        const routes = {
          ipv4: route(null, familySnapshot(ports.ipv4, "ipv4"), places.ipv4),
          ipv6: route(null, familySnapshot(ports.ipv6, "ipv6"), places.ipv6),
        };
        for (const family of families)
          for (const routed of routes[family].ports.values()) {
            const picture = atOnce(pictureOf(modes[mode], routes, routed));
            for (const path of picture.paths) {
              // As a user would copy the command from the page.
              const [from, to] = [parseFrom(path.from), parseTo(path.to)];
              if (!from.ok || !to.ok) throw new Error(`${path.from} ${path.to}`);
              const question = questionOf(from.value as Sender, to.value, routes);
              if (!question.ok) throw new Error(question.reason);
              const expected = trace(modes[mode], routes[family], question.value.packet);
              const { outcome, because, clientSees } = path;
              expect({ outcome, because, clientSees }).toEqual({
                outcome: expected.outcome,
                because: expected.because,
                clientSees: expected.clientSees,
              });
              const name = (index: number) => picture.endpoints[index]!.endpoint;
              expect(path.chosen.map(name)).toEqual(expected.candidates.map(({ endpoint }) => endpoint));
              expect(path.candidates).toBe(expected.candidates.length);
              for (const { probability } of expected.candidates)
                expect(probability).toBe(1 / path.candidates);
              expect(path.masqueraded).toBe(
                expected.candidates.filter(({ masquerade }) => masquerade).length,
              );
              expect(path.leftOut.map(({ endpoint, reason }) => [name(endpoint), reason])).toEqual(
                expected.leftOut.map(({ endpoint, reason }) => [endpoint, reason]),
              );
              compared++;
            }
          }
      },
    ),
  );
  expect(compared).toBeGreaterThan(500);
});

it("has twenty of many Frontends, the number of the others, and pauses after each path", () => {
  const externalIPs = Array.from({ length: 24 }, (_, i) => `198.51.100.${i}`);
  const routes = routed([smallPort("shop/web", { externalIPs, endpoints: [endpoint("10.180.0.1:80")] })]);
  const both = { ipv4: routes, ipv6: routed([], ipv6Settings) };
  const steps = pictureOf(modes.nftables, both, routes.ports.get("shop/web/tcp/")!);
  let pauses = 0;
  let step = steps.next();
  for (; step.done !== true; step = steps.next()) pauses++;
  const { frontends, moreFrontends, paths } = step.value;
  expect([frontends.length, moreFrontends]).toEqual([20, 5]);
  expect(new Set(paths.map(({ frontend }) => frontend)).size).toBe(20);
  expect(pauses).toBe(paths.length);
});
