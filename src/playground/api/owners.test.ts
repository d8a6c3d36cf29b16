// Who owns which field, in the small API: as the real one told the same story (test/cluster/small-api.test.ts).
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { type Tell, tellStory } from "../../../test/support/field-owners.ts";
import { admission } from "../cluster/admission.ts";
import { ApiServer } from "./server.ts";

it("several managers meet the conflicts and get the fields they get from the real API server", async () => {
  const admit = admission({ services: () => server.list("Service"), hasNamespace: () => true });
  const server = new ApiServer({ customs: { admit, linger: () => null } });
  await server.listen();
  const tell: Tell = async (method, path, body, contentType) => {
    const headers = { "content-type": contentType };
    const answer = await fetch(server.url + path, { method, headers, body: JSON.stringify(body) });
    return { code: answer.status, body: await answer.json() };
  };
  try {
    const told: unknown = JSON.parse(JSON.stringify(await tellStory(tell)));
    const file = join(import.meta.dirname, "../../../test/golden/field-owners.txt");
    const recorded = readFileSync(file, "utf8").trimEnd().split("\n");
    expect(told).toEqual(recorded.map((line): unknown => JSON.parse(line)));
  } finally {
    await server.close();
  }
});
