// Services that change their type, families and ports in the small API: as the real one told it (test/cluster/small-api.test.ts).
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { tellServiceLife } from "../../test/support/service-life.ts";
import { toldToSmallApi } from "../../test/support/small-api.ts";

it("Services get, keep, lose and are refused what the real API server gives, keeps, takes and refuses", async () => {
  const file = join(import.meta.dirname, "../../test/golden/service-life.txt");
  const told = await toldToSmallApi(tellServiceLife);
  expect(`${told.join("\n")}\n`).toBe(readFileSync(file, "utf8"));
});
