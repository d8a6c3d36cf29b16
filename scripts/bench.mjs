// Runs benchmarks: the named ones, or without a name all but the slow ones. Each prints a table and writes bench/results/NAME.json.
// `compare` also runs those that belong to the comparison, and writes the tables of targets and sizes into docs/benchmarks.md.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { build } from "esbuild";
import { sizesTable, targetsTable } from "../bench/lib/targets.ts";
import { bundled, root } from "./bundle.mjs";

const results = join(root, "bench", "results");
const benches = readdirSync(join(root, "bench"))
  .filter((file) => file.endsWith(".ts"))
  .map((file) => ({ name: basename(file, ".ts"), about: firstLine(join(root, "bench", file)) }))
  .map((bench) => ({ ...bench, slow: bench.about.startsWith("Slow") }));

const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !benches.some((bench) => bench.name === name));
if (unknown.length > 0) {
  console.error(`bench: there is no benchmark ${unknown.join(", ")}; there are:`);
  listBenches(console.error);
  process.exit(1);
}
if (wanted.length === 0) listBenches(console.log);

/** Those whose rows are targets come first. */
const comparison = ["compare", "churn", "recovery", "idle", "datapath", "api"];
const page = join(root, "docs", "benchmarks.md");

mkdirSync(results, { recursive: true });
const isComparison = wanted.includes("compare") && process.env.TURNOUT_SIZES === undefined;
if (isComparison) wanted.push(...comparison);
const chosen = benches.filter(({ name, slow }) => (wanted.length === 0 ? !slow : wanted.includes(name)));
const failed = [];
for (const { name } of chosen) if (!(await run(name))) failed.push(name);
if (isComparison) writeTables();
if (failed.length > 0) {
  console.error(`bench: failed: ${failed.join(", ")}`);
  process.exit(1);
}

async function run(name) {
  const outfile = join(root, "dist", "bench", `${name}.cjs`);
  await build({
    ...bundled,
    entryPoints: [`bench/${name}.ts`],
    outfile,
    define: { TURNOUT_VERSION: JSON.stringify("bench") },
  });
  console.log(`\n${name}`);
  const { status } = spawnSync(process.execPath, ["--expose-gc", "--enable-source-maps", outfile], {
    cwd: root,
    stdio: "inherit",
    env: {
      ...process.env,
      PATH: `${process.env.PATH}:/usr/sbin:/sbin`,
      // Daemons under test must not serve the socket of this machine.
      TURNOUT_STATUS_SOCKET: "",
      TURNOUT_BENCH_RESULT: join(results, `${name}.json`),
    },
  });
  return status === 0;
}

/** The tables and what they were measured on. */
function writeTables() {
  const files = comparison.filter((name) => existsSync(join(results, `${name}.json`)));
  const read = (name) => JSON.parse(readFileSync(join(results, `${name}.json`), "utf8"));
  const found = Object.fromEntries(files.map((name) => [name, read(name)]));
  const { at, cpu, cores, linux, node, load } = found.compare;
  const machine = `Measured on ${at.slice(0, 10)}: ${cores} cores (${cpu}), Linux ${linux}, Node.js ${node}, load ${load.toFixed(1)} at the end; median, lowest and highest of the rounds.`;
  let text = readFileSync(page, "utf8");
  text = between(text, "targets", `${targetsTable(found)}\n\n${machine}`);
  text = between(text, "sizes", sizesTable(found));
  writeFileSync(page, text);
  console.log(`\n${targetsTable(found)}`);
}

/** The text with other content between two comments. */
function between(text, name, content) {
  const [first, last] = [`<!-- ${name} -->`, `<!-- end of ${name} -->`];
  const [from, to] = [text.indexOf(first), text.indexOf(last)];
  if (from < 0 || to < from) throw new Error(`docs/benchmarks.md has no ${first} … ${last}`);
  return `${text.slice(0, from)}${first}\n\n${content}\n\n${text.slice(to)}`;
}

function listBenches(print) {
  for (const { name, about } of benches) print(`  ${name.padEnd(16)} ${about}`);
}

function firstLine(file) {
  return readFileSync(file, "utf8")
    .split("\n", 1)[0]
    .replace(/^\/\/ */, "");
}
