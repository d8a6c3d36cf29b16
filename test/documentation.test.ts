// What the documentation states about the code is so: fields and gates that have an effect, and files that exist.
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { fieldAt, paths } from "../src/config/file/fields.ts";
import { gates } from "../src/config/gates/table.ts";

const root = join(import.meta.dirname, "..");
const text = (name: string) => readFileSync(join(root, name), "utf8");
const filesUnder = (folder: string) =>
  (readdirSync(join(root, folder), { recursive: true }) as string[])
    .map((name) => join(folder, name))
    .filter((name) => statSync(join(root, name)).isFile());

/** Every source file without its comments. */
const sources = filesUnder("src")
  .filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts"))
  .map((name) => ({ name, code: text(name).replace(/^\s*(\/\/|\/?\*).*$/gm, "") }));

/** Declares, validates, compares or describes settings, which is no effect. */
const declares =
  /^src\/config\/(file\/fields|live|resolve\/warnings|validate\/.*|docs\/.*|flags\/.*)\.ts$|^src\/explain\/migrate\//;

/** In a file of src/config, or together with its section in another one. */
function isRead(path: string): boolean {
  const words = path.split(".").map((word) => new RegExp(`\\b${word}\\b`));
  const effective = sources.filter(({ name }) => !declares.test(name));
  return effective.some(({ name, code }) =>
    name.startsWith("src/config/") ? words.at(-1)!.test(code) : words.every((word) => word.test(code)),
  );
}

describe("behaviour/6: the descriptions of settings", () => {
  it("fields that nothing reads are described as without effect, and no others", () => {
    const described = paths.filter((path) => fieldAt(path).about.startsWith("Accepted, no effect"));
    expect(described).toEqual(paths.filter((path) => !isRead(path)));
  });

  it("gates that nothing reads are described as without effect", () => {
    const ours = [...gates].filter(([, { about, locked }]) => about !== null && !locked);
    const unread = ours.filter(([name]) => !sources.some(({ code }) => code.includes(`"${name}"`)));
    const silent = unread.filter(([, { about }]) => !about!.startsWith("Accepted, no effect"));
    expect(silent.map(([name]) => name)).toEqual([]);
  });
});

const pages = [
  ...readdirSync(root).filter((name) => /\.md$/.test(name)),
  ...filesUnder("docs"),
  ...filesUnder("deploy"),
].filter((name) => name !== "CHANGELOG.md");

describe("behaviour/6: files that documentation and manifests name", () => {
  it.each(pages)("%s names files that exist", (page) => {
    const named =
      text(page).match(/(?<![\w/.@-])(?:src|test|docs|scripts|deploy|bench|examples)\/[\w./-]+\.\w+/g) ?? [];
    const folders = readdirSync(join(root, "src")).join("|");
    const inSources =
      text(page).match(new RegExp(`(?<![\\w/.-])(?:${folders})/[\\w./-]+\\.ts\\b`, "g")) ?? [];
    const missing = [
      ...named.filter((path) => !existsSync(join(root, path)) && !path.startsWith("bench/results/")),
      ...inSources.filter((path) => !existsSync(join(root, "src", path))),
      ...linksIn(page).filter((link) => !resolves(page, link)),
    ];
    expect(missing).toEqual([]);
  });
});

/** Targets of Markdown links within the repository: a path, a heading (`#start`) or both. */
function linksIn(page: string): string[] {
  if (!page.endsWith(".md")) return [];
  const targets = [...text(page).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target!);
  return targets.filter((target) => !/^[a-z]+:/.test(target));
}

function resolves(page: string, link: string): boolean {
  const [path, heading] = link.split("#") as [string, string?];
  const target = path === "" ? page : join(dirname(page), path);
  if (!existsSync(join(root, target))) return false;
  return heading === undefined || headingsOf(target).includes(heading);
}

/** As GitHub names them in links. */
function headingsOf(page: string): string[] {
  const prose = text(page).replace(/^```.*?^```/gms, "");
  return [...prose.matchAll(/^#+ (.*)$/gm)].map(([, title]) =>
    title!
      .toLowerCase()
      .replace(/[^\w\- ]/g, "")
      .replaceAll(" ", "-"),
  );
}
