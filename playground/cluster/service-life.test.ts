// Services that change type, families and ports: the playground API responds like the real one (test/cluster/small-api.test.ts).
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { sendServiceLife } from "../../test/support/service-life.ts";
import { withSmallApi } from "../../test/support/small-api.ts";

it("responds to Service changes like the real API server", async () => {
  const file = join(import.meta.dirname, "../../test/golden/service-life.txt");
  const responses = await withSmallApi(sendServiceLife);
  expect(`${responses.join("\n")}\n`).toBe(readFileSync(file, "utf8"));
});
