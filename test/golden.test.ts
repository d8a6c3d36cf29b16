// Golden files of the scenarios: exactly what a dry run prints, so that no change of a Plan goes unseen.
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { families } from "../src/model/address.ts";
import { compile as compileIptables } from "../src/modes/iptables/compile.ts";
import { compile as compileIpvs } from "../src/modes/ipvs/compile.ts";
import { compile as compileNftables } from "../src/modes/nftables/compile.ts";
import { print as printIptables } from "../src/plan/iptables/print.ts";
import { print as printIpvs } from "../src/plan/ipvs/print.ts";
import { unfold } from "../src/plan/nftables/plan.ts";
import { print as printNftables } from "../src/plan/nftables/print.ts";
import { printRoutes } from "../src/routing/print.ts";
import type { Routes } from "../src/routing/routes.ts";
import { routesFor } from "./scenario-routes.ts";
import { readScenario, scenarioNames } from "./scenarios.ts";

const noCounters = { invalidDropped: false, localhostNodePorts: false };

const goldens = {
  "routes.txt": { mode: "nftables", print: (routes: Routes) => printRoutes(routes) },
  "nftables.nft": {
    mode: "nftables",
    print: (routes: Routes) => printNftables(unfold(compileNftables(null, routes))),
  },
  "iptables.rules": {
    mode: "iptables",
    print: (routes: Routes) => printIptables(compileIptables(null, routes, noCounters)),
  },
  "ipvs.txt": {
    mode: "ipvs",
    print: (routes: Routes) => printIpvs(compileIpvs(null, routes, { scheduler: "", excludeCIDRs: [] })),
  },
} as const;

/** Tables are long and mostly the same from scenario to scenario: those of a few represent all. */
const withTables = ["affinity", "cluster-ip", "external-policy-local", "source-ranges"];

const files = scenarioNames().flatMap((name) => {
  const wanted = withTables.includes(name)
    ? (Object.keys(goldens) as (keyof typeof goldens)[])
    : ["routes.txt" as const];
  return wanted.map((file) => ({ name, file }));
});

describe("a dry run, renewed with: npx vitest run --project unit test/golden.test.ts -u", () => {
  it.each(files)("prints $name/$file", async ({ name, file }) => {
    const { objects, settings } = readScenario(name);
    const { mode, print } = goldens[file];
    const text = families.map((family) => print(routesFor(objects, settings, mode, family))).join("\n");
    await expect(text).toMatchFileSnapshot(join(import.meta.dirname, "scenarios", name, file));
  });
});
