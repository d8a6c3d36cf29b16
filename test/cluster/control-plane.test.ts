// A control plane that cannot start leaves nothing running.
import { expect, it } from "vitest";
import { findAssets } from "../assets.ts";
import { createNamespace, processesIn, reasonToSkip } from "../kernel/netns.ts";
import { places } from "../places.ts";
import { startControlPlane } from "./control-plane.ts";

const assets = findAssets("etcd");
const reason = reasonToSkip() ?? (assets.found ? null : assets.reason);

it("an API server that ends immediately stops etcd too", async ({ skip }) => {
  if (reason !== null || !assets.found) return skip(reason ?? "");
  const netns = createNamespace("plane");
  try {
    netns.ip("link set lo up", `addr add ${places.host}/32 dev lo`);
    const binaries = { ...assets.paths, "kube-apiserver": "false", "kube-controller-manager": "false" };
    await expect(startControlPlane(netns, binaries)).rejects.toThrow("kube-apiserver did not get ready");
    expect(processesIn(netns.name)).toEqual([]);
  } finally {
    netns.remove();
  }
});
