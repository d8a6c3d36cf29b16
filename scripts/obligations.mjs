// Lists the proof obligations without a test: node scripts/obligations.mjs [01 04 …]. A test names its obligation
// (`it("01/17 …")`); one that is deliberately not met has a line with its number in docs/compatibility.md.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname ?? new URL(".", import.meta.url).pathname, "..");
const counts = JSON.parse(readFileSync(join(root, "test/obligations.json"), "utf8"));
// A title starts with its obligations; elsewhere in a test `10/24` may be a network.
const titles = /["'`]((?:[0-9]{2}\/[0-9]{1,2}(?:[-–][0-9]{1,2})?(?:[ ,&+]|and )*)+)/g;
const wanted = process.argv.slice(2);
const named = new Set([
  ...testTexts().flatMap((body) => [...body.matchAll(titles)].flatMap(([, ids]) => numbersIn(ids))),
  ...numbersIn(text("docs/compatibility.md")),
]);

let missing = 0;
for (const [spec, count] of Object.entries(counts).sort(([a], [b]) => a.localeCompare(b))) {
  if (wanted.length > 0 && !wanted.includes(spec)) continue;
  const open = Array.from({ length: count }, (_, i) => `${spec}/${i + 1}`).filter((id) => !named.has(id));
  missing += open.length;
  console.log(
    `${spec}: ${count - open.length} of ${count}${open.length === 0 ? "" : `; open: ${open.join(" ")}`}`,
  );
}
process.exitCode = missing === 0 ? 0 : 1;

/** In test/ also files that several suites share. */
function testTexts() {
  const endings = { src: ".test.ts", test: ".ts" };
  return Object.entries(endings).flatMap(([folder, ending]) =>
    readdirSync(join(root, folder), { recursive: true })
      .filter((name) => name.endsWith(ending))
      .map((name) => text(join(folder, name))),
  );
}

/** `04/3`, also in a range like `04/3-7`. */
function numbersIn(body) {
  return [...body.matchAll(/(?<![\w.:/])([0-9]{2})\/([0-9]{1,2})(?:[-–]([0-9]{1,2}))?\b/g)].flatMap(
    ([, spec, from, to]) =>
      Array.from({ length: Number(to ?? from) - Number(from) + 1 }, (_, i) => `${spec}/${Number(from) + i}`),
  );
}

function text(path) {
  try {
    return readFileSync(join(root, path), "utf8");
  } catch {
    return "";
  }
}
