// The manual page and the JSON Schema in docs/ match the tables.
import { describe, expect, it } from "vitest";
import type { Flag } from "../../cli/flags.ts";
import { ownFlags, variableOf } from "../../cli/own-flags.ts";
import { paths } from "../file/fields.ts";
import { flagNames } from "../flags/table.ts";
import { configurationPage } from "./page.ts";
import { configSchema } from "./schema.ts";

const own = ownFlags.map((flag: Flag) => ({
  name: flag.name,
  variable: variableOf(flag),
  values: [flag.choices?.join(", "), flag.fallback && `default ${flag.fallback}`].filter(Boolean).join("; "),
  about: flag.description,
}));

describe("docs", () => {
  it("has the page of the tables", async () => {
    await expect(configurationPage(own)).toMatchFileSnapshot("../../../docs/configuration.md");
  });

  it("has the schema of the table", async () => {
    const text = `${JSON.stringify(configSchema(), null, 2)}\n`;
    await expect(text).toMatchFileSnapshot("../../../docs/kube-proxy-configuration.schema.json");
  });

  it("names every flag and every field", () => {
    const page = configurationPage(own);
    for (const name of flagNames) expect(page).toContain(`--${name}`);
    for (const path of paths) expect(page).toContain(`| \`${path}\` |`);
  });
});
