// Who owns which field, as the real API server tells it: the recorded answers are its own.
import { join } from "node:path";
import { expect, it } from "vitest";
import { findAssets } from "../assets.ts";
import { createNamespace, reasonToSkip } from "../kernel/netns.ts";
import { places } from "../places.ts";
import { tellStory } from "../support/field-owners.ts";
import { startControlPlane } from "./control-plane.ts";

const assets = findAssets("etcd", "kube-apiserver", "kube-controller-manager");
const reason = reasonToSkip() ?? (assets.found ? null : assets.reason);

it("the real API server tells the story of the owners as it was recorded", async ({ skip }) => {
  if (reason !== null || !assets.found) return skip(reason ?? "");
  const netns = createNamespace("owners");
  netns.ip("link set lo up", `addr add ${places.host}/32 dev lo`);
  const plane = await startControlPlane(netns, { ...assets.paths, "kube-controller-manager": "false" }).catch(
    (error: unknown) => {
      netns.remove();
      throw error;
    },
  );
  try {
    const told = (await tellStory(plane.api)).map((each) => `${JSON.stringify(each)}\n`);
    const file = join(import.meta.dirname, "../golden/field-owners.txt");
    await expect(told.join("")).toMatchFileSnapshot(file);
  } finally {
    await plane.close();
    netns.remove();
  }
});
