// A separate node for each test of a suite, its API server with these objects, removed afterwards.
import { afterEach, beforeEach } from "vitest";
import type { KubeObject } from "../reference/objects.ts";
import { openSite, reasonNotToRun, type Site } from "./site.ts";

/** To be called while a suite is being described. */
export function siteForEach(objects: readonly KubeObject[]): { readonly site: Site } {
  const reason = reasonNotToRun();
  let site: Site;
  beforeEach(async ({ skip }) => {
    skip(reason !== null, reason ?? "");
    site = await openSite();
    await site.openApi();
    for (const object of objects) site.api.put(object);
  });
  afterEach(() => site?.close());
  return {
    get site() {
      return site;
    },
  };
}
