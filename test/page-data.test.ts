// What the page shows of the past is what the tools print: compared through its JSON, for generated clusters.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RunCommand } from "../src/cli/command.ts";
import { history } from "../src/cli/commands/history.ts";
import { printMoment } from "../src/cli/moment.ts";
import type { FrontendChange } from "../src/explain/compare.ts";
import type { HistoryEntry } from "../src/history/entry.ts";
import type { HistoryAnswer } from "../src/inspect/history.ts";
import { kinds } from "../src/manifests/objects.ts";
import type { ChangeJson, HistoryView } from "../src/page/json.ts";
import { changesView } from "../src/page/records/changes.ts";
import { arbitraryObject } from "./generators.ts";
import { service } from "./objects.ts";
import { outputWith } from "./support/command-output.ts";
import { type ShopDaemon, shopDaemon, webSlice } from "./support/history-daemon.ts";

const scratch = mkdtempSync(join(tmpdir(), "turnout-page-data-"));
afterAll(() => rmSync(scratch, { recursive: true }));

async function outputOf(command: RunCommand, shop: ShopDaemon, ...argv: string[]): Promise<string> {
  const { out, err } = await outputWith(command, argv, { clock: shop.clock });
  expect(err).toBe("");
  return out;
}

async function viewOf(shop: ShopDaemon | null, query: Record<string, string>) {
  const records = shop === null ? null : { history: shop.history.lines };
  const { status, body } = await changesView(records, new URLSearchParams(query));
  return { status, view: JSON.parse(body) as HistoryView & { readonly error?: string } };
}

/** As `-o json` has it. */
function entryIn({ text: _text, ...entry }: ChangeJson): HistoryEntry {
  return { ...entry, changes: entry.changes.map(({ frontends: _frontends, ...change }) => change) };
}

/** As `turnout history` prints it. */
function textIn({ at, text }: ChangeJson): string {
  const details = [...(text.clock === null ? [] : [text.clock]), ...text.lines, text.written];
  return `${printMoment(at)}  ${text.cause}\n${details.map((line) => `  ${line}\n`).join("")}`;
}

describe("the history of each Service of a generated cluster", () => {
  let shop: ShopDaemon;
  let close: () => void;
  const socket = join(scratch, "status.sock");
  beforeAll(async () => {
    shop = await shopDaemon();
    const objects = fc.sample(
      fc.constantFrom(...kinds).chain((kind) => fc.tuple(fc.constant(kind), arbitraryObject(kind, tame))),
      { seed: 21, numRuns: 800 },
    );
    for (const [i, [kind, object]] of objects.entries()) {
      shop.clock.advance(1000);
      if (i % 40 === 39) await shop.remove("Service", "web");
      else await shop.change(kind, object, i % 50 === 7 ? failed : {});
    }
    close = await shop.serve(socket);
  });
  afterAll(() => close());
  const tame = { hostile: false };
  const failed = { outcome: { kind: "failed", message: "EBUSY" } } as const;

  it("is what turnout history prints, as JSON and as text", async () => {
    const all = JSON.parse(
      await outputOf(history, shop, `--source=daemon:${socket}`, "-o", "json"),
    ) as HistoryAnswer;
    // Names with dots are no names of Services for an API server, and no command takes them.
    const services = new Set(
      all.changes
        .flatMap(({ changes }) => changes.map((each) => each.service))
        .filter((name) => !name.includes(".")),
    );
    let compared = 0;
    for (const name of services) {
      const { view } = await viewOf(shop, { name, limit: "200" });
      const args = [`svc/${name}`, `--source=daemon:${socket}`];
      const json = JSON.parse(await outputOf(history, shop, ...args, "-o", "json")) as HistoryAnswer;
      expect(view.history).toEqual(json.history);
      expect(view.changes.map(entryIn).reverse()).toEqual(json.changes);
      const text = await outputOf(history, shop, ...args);
      expect(text).toBe(
        `history begins at ${printMoment(view.history!.beginsAt!)}\n${view.changes.toReversed().map(textIn).join("")}`,
      );
      compared += view.changes.length;
    }
    expect([services.size > 3, compared > 100]).toEqual([true, true]);
  });

  it("has what happened to packets before and after, and nothing where they are handled as before", async () => {
    const name = "shop/web";
    const { view } = await viewOf(shop, { name, limit: "200" });
    const results = view.changes.flatMap(({ changes }) =>
      changes.flatMap((each) => each.frontends!.flatMap(({ fates: all }) => all)),
    );
    expect(results.length).toBeGreaterThan(10);
    for (const { before, after } of results) expect(before).not.toBe(after);
  });

  it("is continued after a change that is known, and cut to the newest", async () => {
    const name = "shop/web";
    const { changes } = (await viewOf(shop, { name, limit: "200" })).view;
    const third = changes[3]!.seq;
    const newer = await viewOf(shop, { name, after: String(third) });
    expect(newer.view.changes).toEqual(changes.slice(0, 3));
    const two = await viewOf(shop, { name, limit: "2" });
    expect([two.view.changes, two.view.more]).toEqual([changes.slice(0, 2), true]);
    expect((await viewOf(shop, { name, limit: "100000" })).view.changes.length).toBeLessThanOrEqual(200);
  });
});

describe("what is not known is stated", () => {
  it("older changes that were dropped, with the reason of turnout history", async () => {
    const shop = await shopDaemon(4_000);
    for (let i = 0; i < 20; i++)
      await shop.change("EndpointSlice", webSlice(...(i % 2 === 0 ? ["1"] : ["2"])));
    const { view } = await viewOf(shop, { name: "shop/web" });
    expect(view.history?.dropped?.entries).toBeGreaterThan(0);
    expect(view.loss).toBe("older changes were dropped because of the size limit");
    expect(view.changes.length).toBe(view.history!.entries);
  });

  it("a daemon without a history, and no daemon", async () => {
    const off = await viewOf(await shopDaemon(0), { name: "shop/web" });
    expect(off.view).toMatchObject({ note: expect.stringContaining("--history-size=8Mi"), changes: [] });
    const none = await viewOf(null, { name: "shop/web" });
    expect(none.view).toMatchObject({ history: null, note: expect.stringContaining("no daemon") });
  });

  it.each(["", "web", "a/b/c", "shop/web:http", "<script>"])("a name that is none: %j", async (name) => {
    const { status, view } = await viewOf(await shopDaemon(), { name });
    expect([status, view.error]).toEqual([400, expect.stringContaining("invalid Service")]);
  });
});

it("of a Service with many endpoints, the packets before and after are cut", async () => {
  const shop = await shopDaemon();
  const many = Array.from({ length: 250 }, (_, i) => String(i + 1));
  await shop.change("EndpointSlice", webSlice(...many));
  await shop.change("Service", service({}, { metadata: { name: "other" } }));
  const { view } = await viewOf(shop, { name: "shop/web" });
  const [change] = view.changes;
  expect(change!.text.lines.at(-1)).toContain("more changes of endpoints");
  const [{ fates: results }] = change!.changes[0]!.frontends! as [FrontendChange];
  for (const { after } of results) expect(after!.length).toBeLessThan(1_010);
});
