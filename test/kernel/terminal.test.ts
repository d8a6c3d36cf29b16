// For any data from a cluster, an API server or a daemon, commands print nothing that a terminal interprets.
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeEach, expect, it, onTestFinished } from "vitest";
import { parseAllDocuments } from "yaml";

const root = join(import.meta.dirname, "..", "..");
const turnout = join(root, "bin", "turnout");
const scratch = mkdtempSync(join(tmpdir(), "turnout-terminal-"));
const notBuilt = existsSync(join(root, "dist", "turnout.cjs"))
  ? null
  : "not built; build with: npm run build";
beforeEach(({ skip }) => skip(notBuilt !== null, notBuilt ?? ""));
afterAll(() => rmSync(scratch, { recursive: true }));

/** What may be printed of all that a terminal or a reader could be deceived by: the ends of lines and tabs. */
const acts = /[^\P{C}\n\t]/u;

const attacks = [
  "\u001b[2J\u001b[1;1Hall is well",
  "\u001b]0;title\u0007",
  "\u009b31mred",
  "web\nnode      forged line",
  "web\r\u202eevil\u2066",
  "\u007f\b\b\b",
  "\u2028\u200f\u{e0041}",
];

type Ran = { readonly text: string; readonly lines: number };

function ran(...argv: readonly string[]): Promise<Ran> {
  return new Promise((resolve) => {
    execFile(turnout, argv, { encoding: "utf8", maxBuffer: 1 << 26 }, (_, stdout, stderr) =>
      resolve({ text: stdout + stderr, lines: `${stdout}${stderr}`.split("\n").length }),
    );
  });
}

async function serving(status: number, body: unknown, where: string | number): Promise<number> {
  const server = createServer((_, response) => {
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(where, resolve));
  onTestFinished(() => void server.close());
  return typeof where === "string" ? 0 : (server.address() as AddressInfo).port;
}

/** The objects of the shop with some of their texts and keys replaced. */
function hostileShop(seed: number): object[] {
  const text = readFileSync(join(root, "examples/shop/shop.yaml"), "utf8");
  const objects = parseAllDocuments(text).map((document) => document.toJS() as unknown);
  const [rolls] = fc.sample(fc.array(fc.nat(99), { minLength: 4000, maxLength: 4000 }), { seed, numRuns: 1 });
  let next = 0;
  const roll = () => rolls![next++ % rolls!.length]!;
  const attacked = (value: string) => (roll() < 12 ? value + attacks[roll() % attacks.length]! : value);
  const walk = (value: unknown): unknown => {
    if (typeof value === "string") return attacked(value);
    if (Array.isArray(value)) return value.map(walk);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, inner]) => [
        ["kind", "apiVersion", "metadata", "spec"].includes(key) ? key : attacked(key),
        ["kind", "apiVersion"].includes(key) ? inner : walk(inner),
      ]),
    );
  };
  const node = { apiVersion: "v1", kind: "Node", metadata: { name: "node-a" } };
  return [...objects.map((object) => walk(object) as object), node];
}

it("security/8: files with hostile text in every field, in every command", { timeout: 120_000 }, async () => {
  let escapes = 0;
  for (const seed of [1, 2, 3, 4, 5]) {
    const file = join(scratch, `shop-${seed}.json`);
    writeFileSync(file, JSON.stringify({ apiVersion: "v1", kind: "List", items: hostileShop(seed) }));
    const source = [`--source=files:${file}`, "--node=node-a"];
    const outputs = await Promise.all([
      ran("render", ...source),
      ran("render", "--mode=iptables", ...source),
      ran("explain", "node", "svc/shop/web", ...source),
      ran("diff", `--against=files:${join(root, "examples/shop")}`, ...source),
      ran("doctor", "migrate", "--from=iptables", "--to=nftables", ...source),
    ]);
    for (const { text } of outputs) {
      expect(text).not.toMatch(acts);
      expect(text).not.toMatch(/^node {6}forged line/m);
      escapes += text.match(/\\u00(1b|9b)/g)?.length ?? 0;
    }
  }
  expect(escapes).toBeGreaterThan(0);
});

it("security/8: an API server with hostile messages", async () => {
  const message = attacks.join("");
  const port = await serving(403, { kind: "Status", code: 403, reason: "Forbidden", message }, 0);
  const { text, lines } = await ran("render", `--source=http://127.0.0.1:${port}`, "--node=node-a");
  expect(text).toContain("\\u001b[2J");
  expect(text).not.toMatch(acts);
  expect(lines).toBe(2);
});

it("security/8: a daemon that passes on hostile messages, as text and as JSON", async () => {
  const message = attacks.join("");
  const socket = join(scratch, "status.sock");
  const status = {
    ...{ pid: 1, version: message, node: message, mode: message, families: ["ipv4"], source: message },
    ...{ configuration: message, ownership: "plain", startedAt: 0, lastSuccess: {} },
    waits: { for: message, since: 0, until: null },
    syncs: [{ family: "ipv4", trigger: message, outcome: { kind: "failed", message } }],
    problems: [{ kind: "unreadable", object: message, field: message, message }],
    drift: [{ at: 0, family: "ipv4", differences: 1, what: message }],
    watches: {
      Service: { synced: true, watchSince: null, lastEventAt: null, lastError: { message, at: 0 } },
    },
  };
  await serving(200, status, socket);
  const text = await ran("status", `--source=daemon:${socket}`);
  expect(text.text).not.toMatch(acts);
  expect(text.text.split("\n").map((line) => line.slice(0, 9).trim())).toEqual([
    "daemon",
    "node",
    "source",
    "waiting",
    "applied",
    "syncs",
    "watches",
    "drift",
    "problems",
    "",
  ]);
  const json = await ran("status", `--source=daemon:${socket}`, "-o", "json");
  expect(json.text).not.toMatch(acts);
  expect(JSON.parse(json.text)).toEqual(status);
});
