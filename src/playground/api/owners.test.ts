// Who owns which field, in the small API: as the real one told the same story (test/cluster/small-api.test.ts).
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { tellStory } from "../../../test/support/field-owners.ts";
import { toldToSmallApi } from "../../../test/support/small-api.ts";

it("several managers meet the conflicts and get the fields they get from the real API server", async () => {
  const told: unknown = JSON.parse(JSON.stringify(await toldToSmallApi(tellStory)));
  const file = join(import.meta.dirname, "../../../test/golden/field-owners.txt");
  const recorded = readFileSync(file, "utf8").trimEnd().split("\n");
  expect(told).toEqual(recorded.map((line): unknown => JSON.parse(line)));
});
