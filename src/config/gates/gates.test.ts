// Feature gates: groups, explicit settings, locks.
import { describe, expect, it } from "vitest";
import { resolveGates } from "./gates.ts";
import { removedGates } from "./removed.ts";
import { gates } from "./table.ts";

describe("gates", () => {
  it("have their defaults", () => {
    const { enabled, errors, notices } = resolveGates({});
    expect([enabled("KubeProxyIPVS"), enabled("LoggingAlphaOptions")]).toEqual([true, false]);
    expect([...errors, ...notices]).toEqual([]);
  });

  it("follow their group unless set by name", () => {
    expect(resolveGates({ AllAlpha: true }).enabled("LoggingAlphaOptions")).toBe(true);
    expect(resolveGates({ AllAlpha: true, LoggingAlphaOptions: false }).enabled("LoggingAlphaOptions")).toBe(
      false,
    );
    expect(resolveGates({ AllBeta: false }).enabled("LoggingBetaOptions")).toBe(false);
    expect(resolveGates({ AllBeta: false }).enabled("NFTablesProxyMode")).toBe(true);
    expect(resolveGates({ AllAlpha: true }).enabled("AllAlpha")).toBe(true);
  });

  it("report every unknown and locked gate", () => {
    expect(resolveGates({ Nope: true, WinDSR: false, toString: true }).errors).toHaveLength(3);
    expect(resolveGates({ WinDSR: false }).enabled("WinDSR")).toBe(true);
  });

  it("behaviour/5: gates of earlier releases are accepted with a notice, whatever their value", () => {
    const { errors, notices, all } = resolveGates({ EndpointSliceProxying: true, TopologyAwareHints: false });
    expect(errors).toEqual([]);
    expect(notices).toEqual([
      "feature gate EndpointSliceProxying was removed from Kubernetes and has no effect: do not set it",
      "feature gate TopologyAwareHints was removed from Kubernetes and has no effect: do not set it",
    ]);
    expect(all.has("EndpointSliceProxying")).toBe(false);
    expect([...removedGates].filter((name) => gates.has(name))).toEqual([]);
  });

  it("accept the gates of other programs", () => {
    expect(resolveGates({ GracefulNodeShutdown: false }).errors).toEqual([]);
    expect(resolveGates({}).all.size).toBeGreaterThan(200);
  });
});
