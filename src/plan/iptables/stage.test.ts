// A huge load in layers: small transactions, deepest first, that write the same as one big one.
import { describe, expect, it } from "vitest";
import { endpoint, routed, servicePort } from "../../../test/support/routed.ts";
import { applyInMemory, freshTables } from "../../host/iptables/memory.ts";
import { compile } from "../../modes/iptables/compile.ts";
import { adopt } from "./adopt.ts";
import { printPatch } from "./print.ts";
import { stage } from "./stage.ts";

const counters = { invalidDropped: false, localhostNodePorts: false };

function load(services: number) {
  const ports = Array.from({ length: services }, (_, i) =>
    servicePort(`shop/s${i}`, {
      clusterIP: `172.30.${i >> 8}.${i & 255}`,
      nodePort: 30000 + i,
      externalPolicy: "local",
      endpoints: [endpoint(`10.180.0.${i & 255}:8080`), endpoint(`10.180.1.${i & 255}:8080`)],
    }),
  );
  return adopt(freshTables("ipv4"), compile(null, routed(ports), counters));
}

describe("staging", () => {
  it("leaves small changes whole", () => {
    const patch = load(20);
    expect(stage(patch).steps).toEqual(patch.steps);
  });

  it("splits a huge load into batches, none of which refers to a missing chain", () => {
    const patch = load(1000);
    const staged = stage(patch);
    expect(staged.steps.length).toBeGreaterThan(5);
    expect(applyInMemory(freshTables("ipv4"), staged)).toEqual(applyInMemory(freshTables("ipv4"), patch));
    const lines = printPatch(staged).split("\n");
    const known = new Set<string>();
    for (const line of lines) {
      if (line.startsWith(":")) known.add(line.slice(1, line.indexOf(" ")));
      const target = / -j (KUBE-\S+)$/.exec(line)?.[1];
      if (target !== undefined && !known.has(target)) throw new Error(`${line} leads nowhere`);
    }
  });

  it("writes the entry points last", () => {
    const tables = stage(load(1000)).steps.filter(({ table }) => table === "nat");
    const at = (name: string) => tables.findIndex(({ write }) => write.some((chain) => chain.name === name));
    expect(at("KUBE-SERVICES")).toBe(tables.length - 1);
    expect(at("KUBE-MARK-MASQ")).toBe(0);
  });
});
