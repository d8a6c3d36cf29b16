// The story by which the small API is checked, sent to the real API server: the recorded answers are its own.
import { join } from "node:path";
import { expect, it } from "vitest";
import { findAssets } from "../assets.ts";
import { createNamespace, reasonToSkip } from "../kernel/netns.ts";
import { places } from "../places.ts";
import { sendServiceLife } from "../support/service-life.ts";
import { startControlPlane } from "./control-plane.ts";

const assets = findAssets("etcd", "kube-apiserver", "kube-controller-manager");
const reason = reasonToSkip() ?? (assets.found ? null : assets.reason);

it("the real API server answers as recorded", async ({ skip }) => {
  if (reason !== null || !assets.found) return skip(reason ?? "");
  const netns = createNamespace("small-api");
  netns.ip("link set lo up", `addr add ${places.host}/32 dev lo`);
  const plane = await startControlPlane(netns, { ...assets.paths, "kube-controller-manager": "false" }).catch(
    (error: unknown) => {
      netns.remove();
      throw error;
    },
  );
  try {
    const life = await sendServiceLife(plane.api);
    const golden = join(import.meta.dirname, "../golden/service-life.txt");
    await expect(`${life.join("\n")}\n`).toMatchFileSnapshot(golden);
  } finally {
    await plane.close();
    netns.remove();
  }
});
