// Slices by their Service: in the order of their names, at a cost that follows their number.
import { expect, it } from "vitest";
import type { Slice } from "./endpointslice.ts";
import { SliceIndex } from "./sliceindex.ts";

const sliceOf = (owner: string, key: string) => ({ owner, key }) as Slice;

it("has the slices of each Service in the order of their names, as they come, move and go", () => {
  const index = new SliceIndex();
  const slices = ["c", "a", "b"].map((key) => sliceOf("shop/web", key));
  const keys = (owner: string) => index.of(owner).map(({ key }) => key);
  for (const slice of slices) index.move(undefined, slice);
  expect(keys("shop/web")).toEqual(["a", "b", "c"]);
  index.move(slices[1], sliceOf("shop/api", "a"));
  expect([keys("shop/web"), keys("shop/api")]).toEqual([["b", "c"], ["a"]]);
  const newer = sliceOf("shop/web", "b");
  index.move(slices[2], newer);
  expect(index.of("shop/web")).toEqual([newer, slices[0]]);
  index.move(slices[0], undefined);
  index.move(newer, undefined);
  expect(keys("shop/web")).toEqual([]);
});

it("adds and removes slices of one Service without visiting the others", () => {
  const reads = [200, 400].map(keysRead);
  expect(reads[1]).toBeLessThan(2.2 * reads[0]!);
});

/** How often keys of slices are read while so many are added and removed. */
function keysRead(count: number): number {
  let reads = 0;
  const index = new SliceIndex();
  const slices = Array.from({ length: count }, (_, i) =>
    Object.defineProperty(sliceOf("shop/web", ""), "key", {
      get() {
        reads++;
        return `web-${i}`;
      },
    }),
  );
  for (const slice of slices) index.move(undefined, slice);
  for (const slice of slices) index.move(slice, undefined);
  return reads;
}
