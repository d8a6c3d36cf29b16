// `turnout whatif`: golden screens, usage errors, and that its shares are those of explain.
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { whatif } from "../src/cli/commands/whatif.ts";
import { defaultConfig, nodeRoutes } from "../src/explain/node-routes.ts";
import { trace } from "../src/explain/trace.ts";
import { whatIf, withoutEndpoints } from "../src/explain/what-if.ts";
import { Cluster } from "../src/manifests/cluster.ts";
import { kinds } from "../src/manifests/objects.ts";
import { portLabel, type Snapshot } from "../src/model/snapshot.ts";
import { modes } from "../src/modes/index.ts";
import { arbitraryObjects, thisNode } from "./generators.ts";
import { outputOf } from "./support/command-output.ts";

const zones = join(import.meta.dirname, "support/zones");
const source = `--source=files:${join(zones, "cluster.yaml")}`;
const golden = (name: string) => join(import.meta.dirname, "golden/commands", name);

describe("screens", () => {
  it.each([
    ["whatif-node", ["--without=node/node-c"], 3],
    ["whatif-zone", ["--without=zone/a"], 0],
    ["whatif-pod", ["--without=pod/10.0.3.1"], 0],
    ["whatif-several", ["--without=node/node-b", "--without=pod/10.0.3.3"], 3],
    ["whatif-with", [`--with=${join(zones, "new.yaml")}`], 3],
    ["whatif-nothing", ["--without=pod/10.9.9.9"], 0],
  ])("%s", async (name, argv, code) => {
    const text = await outputOf(whatif, ...argv, source, "--node=node-a");
    expect({ code: text.code, err: text.err }).toEqual({ code, err: "" });
    await expect(text.out).toMatchFileSnapshot(golden(`${name}.txt`));
    const json = await outputOf(whatif, ...argv, source, "--node=node-a", "-o", "json");
    await expect(json.out).toMatchFileSnapshot(golden(`${name}.json.txt`));
  });

  it.each([
    [[], "--without or --with is required"],
    [["--without=node-c"], "must be node/NAME, zone/NAME, pod/NAME or pod/ADDRESS"],
    [["--without=node/node-d"], 'no node is named "node-d"; did you mean node-'],
    [["--without=node/x1"], "nodes in this cluster: node-a, node-b, node-c"],
    [["--without=zone/z1"], "zones in this cluster: a, b"],
    [["--without=pod/web-1"], "files contain no pod addresses; use its address"],
    [["--with=/nonexistent.yaml"], "cannot read /nonexistent.yaml: no such file"],
    [[`--with=${import.meta.filename}`], "whatif.test.ts"],
  ])("reports the usage error in %j", async (argv, message) => {
    const { code, out, err } = await outputOf(whatif, ...argv, source, "--node=node-a");
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toContain(message);
    expect(err.trim().split("\n")).toHaveLength(1);
  });
});

it("on generated clusters, the shares are those that explain gives before and after", () => {
  const config = defaultConfig("nftables");
  let compared = 0;
  fc.assert(
    fc.property(
      arbitraryObjects({ hostile: false }),
      fc.constantFrom(thisNode, "node-b"),
      (objects, gone) => {
        const cluster = new Cluster(thisNode);
        for (const kind of kinds) cluster.replace(kind, objects[kind]);
        const before = cluster.take();
        const after = withoutEndpoints(before, ({ nodeName }) => nodeName === gone);
        const here = { nodeName: thisNode, zone: before.node?.zone ?? "" };
        const { changes, withoutEndpoint } = whatIf(before, after, [here]);
        for (const { family, port, protocol, from, usable } of changes) {
          for (const { policy, shares } of from) {
            if (policy !== "Cluster") continue;
            for (const [snapshot, which] of [
              [before, "before"],
              [after, "after"],
            ] as const) {
              const explained = explainedShares(snapshot, family, port, protocol);
              if (explained === null) continue;
              const expected = shares
                .filter((each) => each[which] > 0)
                .map((each) => [each.endpoint, each[which]]);
              expect(new Map(explained)).toEqual(new Map(expected as [string, number][]));
              compared++;
            }
          }
          const isLost = withoutEndpoint.some(
            (each) => each.port === port && each.family === family && each.protocol === protocol,
          );
          expect(isLost).toBe(usable.after === 0 && usable.before > 0);
        }
      },
    ),
    { numRuns: 1600 },
  );
  expect(compared).toBeGreaterThan(100);

  /** null: its cluster IP is not decided by policy Cluster, or another Service holds it. */
  function explainedShares(
    snapshot: Snapshot,
    family: "ipv4" | "ipv6",
    label: string,
    protocol: string,
  ): [string, number][] | null {
    const routes = nodeRoutes(snapshot, thisNode, config)[family];
    const found = [...routes.ports.values()].find(
      ({ port }) => portLabel(port) === label && port.protocol === protocol,
    )!;
    const { port, lost } = found;
    if (port.internalPolicy === "local" || lost.length > 0) return null;
    const from = { address: family === "ipv4" ? "10.9.9.9" : "fd00:9::9", origin: "pod" } as const;
    const to = { address: port.clusterIP, port: port.port, protocol: port.protocol };
    const { candidates } = trace(modes.nftables, routes, { from, to });
    return candidates.map(({ endpoint, probability }) => [endpoint, probability]);
  }
});
