// The flows of a Service for the page: a bounded list, stale ones first, and no reading unless a client asks.
import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { manualClock } from "../../../test/support/manual-clock.ts";
import { endpoint, ipv6Settings, routed, servicePort } from "../../../test/support/routed.ts";
import { trackedView } from "../../../test/support/tracked-flows.ts";
import { HostError } from "../../host/error.ts";
import type { FlowView } from "../../model/flow.ts";
import { modes } from "../../modes/index.ts";
import { attributor } from "../../traffic/attribute.ts";
import { eligibilityReader } from "../../traffic/eligibility.ts";
import { rowOf } from "../../traffic/flow-row.ts";
import type { FlowsView } from "../json.ts";
import { FlowsReader } from "./flows.ts";

const routes = {
  ipv4: routed([
    servicePort("shop/web", {
      endpoints: [endpoint("10.180.0.1:8080"), endpoint("10.180.0.2:8080", { state: "draining" })],
    }),
    servicePort("shop/cart", { clusterIP: "172.30.0.2", endpoints: [endpoint("10.180.0.3:80")] }),
  ]),
  ipv6: routed([], ipv6Settings),
};
const { clusterIP, port } = [...routes.ipv4.ports.values()][0]!.port;
const toWeb = (client: number, to: string) =>
  trackedView(`tcp 10.0.1.9:${client} > ${clusterIP}:${port} > ${to}`);
const fine = toWeb(4002, "10.180.0.1:8080");
const draining = toWeb(4003, "10.180.0.2:8080");
const gone = toWeb(4001, "10.180.0.9:8080");
const other = trackedView("tcp 10.0.1.9:4000 > 172.30.0.2:80 > 10.180.0.3:80");

function reading(flows: () => readonly FlowView[], mode = modes.nftables, tookMs = 0) {
  const clock = manualClock();
  const state = { readings: 0, atOnce: 0, most: 0 };
  const reader = new FlowsReader(
    { name: "node-a", mode, routes: () => routes },
    {
      settings: () => ({ accounting: true, timestamps: false }),
      async visit(visit) {
        state.readings++;
        state.most = Math.max(state.most, ++state.atOnce);
        for (const flow of flows()) visit(flow);
        await nextTurn();
        clock.advance(tookMs);
        state.atOnce--;
        return { examined: flows().length, complete: true };
      },
    },
    clock,
  );
  const ask = async (service: string) => {
    const { status, body } = await reader.answer(service);
    return { status, view: JSON.parse(body) as FlowsView & { readonly error?: string } };
  };
  return { clock, state, ask };
}

describe("the list", () => {
  it("has the flows of the Service as turnout flows has them, stale ones first with their reason", async () => {
    const { ask, clock } = reading(() => [fine, other, draining, gone]);
    const { view } = await ask("shop/web");
    expect(view).toMatchObject({
      node: "node-a",
      mode: "nftables",
      accounting: true,
      examined: 4,
      matched: 3,
      stale: 2,
      classes: { "endpoint-gone": 1, "not-eligible": 1 },
      note: null,
    });
    const { behavior } = modes.nftables;
    const attribute = attributor(routes.ipv4, behavior, { conntrack: "shared" });
    const eligibilityOf = eligibilityReader(routes.ipv4, behavior);
    expect(view.flows.map(({ words: _words, finding: _finding, ...row }) => ({ ...row, pod: null }))).toEqual(
      [gone, draining, fine].map((flow) =>
        rowOf(flow, attribute(flow), { eligibilityOf, now: clock.wall() }),
      ),
    );
    expect(view.flows.map(({ finding }) => finding?.because ?? null)).toEqual([
      "10.180.0.9:8080 is no longer an endpoint of shop/web",
      "the endpoint is terminating, and others are ready",
      null,
    ]);
    expect(view.flows[2]!.words).toBe("eligible, the only choice");
  });

  it("is bounded, and has stale flows wherever they are in the table", async () => {
    const many = Array.from({ length: 5_000 }, (_, i) => toWeb(10_000 + i, "10.180.0.1:8080"));
    const { view } = await reading(() => [...many, gone]).ask("shop/web");
    expect([view.flows.length, view.matched, view.stale]).toEqual([100, 5_001, 1]);
    expect(view.flows[0]?.finding?.class).toBe("endpoint-gone");
  });

  it("states where the mode does not show endpoints", async () => {
    const { view } = await reading(() => [fine], modes.userspace).ask("shop/web");
    expect(view.note).toContain("sockets of Turnout");
  });
});

describe("reading", () => {
  it("is shared by clients that ask for the same Service, and not repeated within a second", async () => {
    const { ask, state, clock } = reading(() => [fine]);
    await Promise.all([ask("shop/web"), ask("shop/web"), ask("shop/web")]);
    clock.advance(900);
    await ask("shop/web");
    expect(state.readings).toBe(1);
    clock.advance(100);
    await ask("shop/web");
    expect([state.readings, clock.pending()]).toEqual([2, 0]);
  });

  it("takes a tenth of the time, one reading after the other, also for several Services", async () => {
    const { ask, state, clock } = reading(() => [fine], modes.nftables, 500);
    await ask("shop/web");
    const second = ask("shop/cart");
    const third = ask("shop/web");
    await nextTurn();
    clock.advance(4_900);
    await nextTurn();
    expect(state.readings).toBe(1);
    clock.advance(100);
    expect((await second).view.matched).toBe(0);
    expect((await third).status).toBe(200);
    expect([state.readings, state.most]).toEqual([2, 1]);
  });

  it("is refused when many wait for it", async () => {
    const { ask, clock } = reading(() => [fine]);
    await ask("shop/web");
    const waiting = Array.from({ length: 8 }, (_, i) => ask(`shop/s${i}`));
    expect((await ask("shop/late")).status).toBe(503);
    for (let i = 0; i < 8; i++) {
      await nextTurn();
      clock.advance(1_000);
      await nextTurn();
    }
    for (const each of await Promise.all(waiting)) expect(each.status).toBe(200);
  });

  it("that fails is answered with the reason, and the next one is tried", async () => {
    let isBroken = true;
    const { ask, clock } = reading(() => {
      if (isBroken) throw new HostError("unavailable", "Cannot read conntrack: permission denied");
      return [fine];
    });
    expect(await ask("shop/web")).toMatchObject({
      status: 503,
      view: { error: "Cannot read conntrack: permission denied" },
    });
    isBroken = false;
    clock.advance(1_000);
    expect((await ask("shop/web")).status).toBe(200);
  });
});
