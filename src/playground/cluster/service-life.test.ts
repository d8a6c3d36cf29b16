// Services that change their type, families and ports in the small API: as the real one told it (test/cluster/small-api.test.ts).
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { Tell } from "../../../test/support/field-owners.ts";
import { tellServiceLife } from "../../../test/support/service-life.ts";
import { ApiServer } from "../api/server.ts";
import { admission } from "./admission.ts";

it("Services get, keep, lose and are refused what the real API server gives, keeps, takes and refuses", async () => {
  const admit = admission({ services: () => server.list("Service"), hasNamespace: () => true });
  const server = new ApiServer({ customs: { admit, linger: () => null } });
  await server.listen();
  const tell: Tell = async (method, path, body, contentType) => {
    const headers = { "content-type": contentType };
    const answer = await fetch(server.url + path, { method, headers, body: JSON.stringify(body) });
    return { code: answer.status, body: await answer.json() };
  };
  try {
    const file = join(import.meta.dirname, "../../../test/golden/service-life.txt");
    expect(`${(await tellServiceLife(tell)).join("\n")}\n`).toBe(readFileSync(file, "utf8"));
  } finally {
    await server.close();
  }
});
