// turnout flows and doctor flows with 200,000 entries in the kernel: all are counted, a few printed, and the heap stays small.
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { dnsObjects } from "../support/dns-objects.ts";
import { insertFlows } from "./insert-flows.ts";
import { createNamespace, type Namespace, reasonToSkip } from "./netns.ts";

const root = join(import.meta.dirname, "..", "..");
const count = 200_000;
/** In MB. With a copy of each flow the heap would need several times as much. */
const heapLimit = 64;

describe.skipIf(reasonToSkip() !== null)(`${count} tracked flows`, () => {
  let netns: Namespace;
  const folder = mkdtempSync(join(tmpdir(), "turnout-many-flows-"));

  beforeAll(async () => {
    netns = createNamespace("many");
    netns.ip("link set lo up");
    await insertFlows(netns, count);
    writeFileSync(join(folder, "cluster.json"), JSON.stringify(cluster));
  });
  afterAll(() => {
    netns?.remove();
    rmSync(folder, { recursive: true });
  });

  const turnout = (...argv: string[]): Promise<{ code: number; out: string; err: string }> =>
    new Promise((resolve) => {
      const line = [join(root, "bin", "turnout"), ...argv, `--source=files:${folder}`, "--node=node-a"];
      const env = { ...process.env, NODE_OPTIONS: `--max-old-space-size=${heapLimit}` };
      const options = { env, maxBuffer: 64 * 1024 * 1024, encoding: "utf8" } as const;
      execFile("ip", ["netns", "exec", netns.name, ...line], options, (error, out, err) =>
        resolve({ code: Number(error?.code ?? 0), out, err }),
      );
    });

  it("are summed by endpoint", async () => {
    const { code, out } = await turnout("flows", "--by=endpoint", "-o", "json");
    expect(code).toBe(0);
    const { examined, services } = JSON.parse(out);
    expect([examined, services.length, services[0].sums.opening]).toEqual([count, 1, count]);
  });

  it("are listed up to the limit, with the number of all", async () => {
    const { code, out, err } = await turnout("flows", "kube-system/dns", "--limit=10");
    expect(code).toBe(0);
    expect(out.trim().split("\n")).toHaveLength(11);
    expect(err).toContain("! 10 of 200,000 flows are printed; use --limit, a SELECTOR or --by=service\n");
  });

  it("of an endpoint that is gone are found and deleted, all of them and nothing else", async () => {
    netns.run(
      "conntrack",
      ..."-I -p udp -t 600 -s 10.1.0.1 -d 192.0.2.1 --sport 1 --dport 53 -r 10.0.1.5 -q 10.1.0.1 --reply-port-src 53 --reply-port-dst 1".split(
        " ",
      ),
    );
    writeFileSync(join(folder, "cluster.json"), JSON.stringify(cluster).replaceAll("10.0.1.5", "10.0.1.6"));
    const found = await turnout("doctor", "flows", "--wait=0", "-o", "json");
    expect(found.code).toBe(3);
    expect(JSON.parse(found.out).classes[0]).toMatchObject({ class: "endpoint-gone", count });
    const { out } = await turnout("doctor", "flows", "--wait=0", "--delete=endpoint-gone", "-o", "json");
    expect(JSON.parse(out).deletion).toEqual({ named: ["endpoint-gone"], deleted: count, kept: 0 });
    expect(netns.run("conntrack", "-L").trim().split("\n")).toEqual([
      expect.stringContaining("dst=192.0.2.1"),
    ]);
  });
});

const cluster = {
  kind: "List",
  apiVersion: "v1",
  items: [
    ...dnsObjects,
    {
      kind: "EndpointSlice",
      apiVersion: "discovery.k8s.io/v1",
      metadata: {
        namespace: "kube-system",
        name: "dns-1",
        labels: { "kubernetes.io/service-name": "dns" },
      },
      addressType: "IPv4",
      ports: [{ port: 53, protocol: "UDP" }],
      endpoints: [{ addresses: ["10.0.1.5"], conditions: { ready: true } }],
    },
  ],
};
