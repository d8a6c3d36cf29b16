// A kube-proxy, the real one or ours, on its own node for the duration of a story, and its metrics.
import { httpGet } from "../kernel/http.ts";
import { nodeObject, openSite, type Site } from "../kernel/site.ts";
import { nodeName } from "../places.ts";
import { enter } from "../reference/foothold.ts";
import type { KubeObject } from "../reference/objects.ts";
import { type Configuration, type RunningProxy, startProxy } from "../reference/proxy.ts";

/** The story begins when both families have synced. */
export async function withProxy<T>(
  program: string,
  configuration: Configuration,
  objects: readonly KubeObject[],
  story: (proxy: RunningProxy, site: Site, metrics: () => Promise<string>) => Promise<T>,
): Promise<T> {
  const site = await openSite();
  let proxy: RunningProxy | null = null;
  try {
    const all = [nodeObject(), ...objects];
    proxy = await startProxy(enter(site.netns), program, configuration, nodeName, all);
    await proxy.ready();
    const metrics = async () => (await httpGet(site.netns, "http://127.0.0.1:10249/metrics"))?.body ?? "";
    return await story(proxy, site, metrics);
  } finally {
    await proxy?.stop();
    await site.close();
  }
}
