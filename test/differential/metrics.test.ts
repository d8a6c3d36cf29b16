// The metrics page of the real kube-proxy and ours, side by side: the same names, types, labels and buckets in each mode.
import { describe, expect, it } from "vitest";
import { findAssets } from "../assets.ts";
import { reasonToSkip } from "../kernel/netns.ts";
import { changedShopSlice, shop } from "../kernel/shop.ts";
import { eventually, nodeObject, openSite } from "../kernel/site.ts";
import { nodeName } from "../places.ts";
import { enter } from "../reference/foothold.ts";
import { type Mode, type RunningProxy, startProxy } from "../reference/proxy.ts";
import { parsePrometheus } from "../support/prometheus.ts";
import { ourProgram, reasonNotToRun } from "./program.ts";

const assets = findAssets("kube-proxy");
const reason = reasonToSkip() ?? (assets.found ? reasonNotToRun(ourProgram) : assets.reason);
/** What dashboards and alerts for kube-proxy look at. */
const watched = /^(kubeproxy|process|kubernetes|rest_client_(request|requests|response|rate))_/;
const configuration = { detectLocalMode: "ClusterCIDR", clusterCIDR: "10.180.0.0/16,fd00:180::/48" };

describe("03/33 metrics", () => {
  it.for(["nftables", "iptables"] as const)(
    "of mode %s are those of kube-proxy v1.37",
    async (mode, { skip }) => {
      if (reason !== null || !assets.found) return skip(reason ?? "");
      const theirs = await pagesOf(assets.paths["kube-proxy"], mode);
      const ours = await pagesOf(ourProgram, mode);
      expect(ours).toEqual(theirs);
      expect(ours.some((line) => line.startsWith("kubeproxy_network_programming_duration_seconds"))).toBe(
        true,
      );
    },
  );
});

/** Every series of both pages without its value: `name{label="value"} type`. */
async function pagesOf(program: string, mode: Mode): Promise<readonly string[]> {
  const site = await openSite();
  let proxy: RunningProxy | null = null;
  try {
    const foothold = enter(site.netns);
    const objects = [nodeObject(), ...shop()];
    proxy = await startProxy(foothold, program, { mode, ...configuration }, nodeName, objects);
    await proxy.ready();
    for (const path of ["healthz", "livez"]) await foothold.get(`http://127.0.0.1:10256/${path}`);
    // A change that tells when it was triggered gives a sample of latency.
    proxy.api.put(changedShopSlice(new Date()));
    let lines: readonly string[] = [];
    const hasSample = async () => {
      const texts = ["metrics", "metrics/slis"].map((path) => foothold.get(`http://127.0.0.1:10249/${path}`));
      lines = (await Promise.all(texts)).flatMap((text) => seriesIn(text ?? ""));
      // The Event of the start is the only request that is no watch.
      return ["kubeproxy_network_programming", "rest_client_response_size"].every((name) =>
        lines.some((line) => line.startsWith(name)),
      );
    };
    await eventually(hasSample, `a sample of latency and an Event from ${program}`);
    return lines;
  } finally {
    await proxy?.stop();
    await site.close();
  }
}

function seriesIn(text: string): string[] {
  const lines = [...parsePrometheus(text)].flatMap(([family, { type, series }]) =>
    watched.test(family) ? series.map(({ name, labels }) => `${name}${labelText(labels)} ${type}`) : [],
  );
  return lines.sort();
}

/** What was built, with what, is of course different; which gates there are is not. */
function labelText(labels: Readonly<Record<string, string>>): string {
  const isBuild = "git_version" in labels;
  const parts = Object.entries(labels).map(([key, value]) => `${key}="${isBuild ? "" : value}"`);
  return `{${parts.sort().join(",")}}`;
}
