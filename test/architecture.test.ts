// Keeps the table of folders true: what may import what, by path; which files are pure; where modes are known by name; how large folders and functions are.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { parseAst } from "vitest/node";

const root = resolve(import.meta.dirname, "..");

type Layer = {
  readonly name: string;
  /** Which files belong to it; the first layer that matches counts. */
  readonly files: RegExp;
  readonly pure: boolean;
  /** Names of layers, or single files. */
  readonly imports: readonly string[];
};

const core = ["model", "config", "manifests", "routing", "traffic", "plan", "modes", "explain", "history"];
const effects = ["modes/host", "host", "sources", "sync", "observe"];

const layers: readonly Layer[] = [
  { name: "model", files: /^src\/model\//, pure: true, imports: [] },
  { name: "config", files: /^src\/config\//, pure: true, imports: ["model"] },
  { name: "manifests", files: /^src\/manifests\//, pure: true, imports: ["model"] },
  { name: "routing", files: /^src\/routing\//, pure: true, imports: ["model", "config"] },
  { name: "traffic", files: /^src\/traffic\//, pure: true, imports: ["model", "config", "routing"] },
  { name: "plan", files: /^src\/plan\//, pure: true, imports: ["model"] },
  {
    name: "modes/host",
    files: /^src\/modes\/(\w+\/(host\/|mode\.ts)|index\.ts|sysctls\.ts)/,
    pure: false,
    imports: ["model", "config", "routing", "plan", "modes", "host"],
  },
  {
    name: "modes",
    files: /^src\/modes\//,
    pure: true,
    imports: ["model", "config", "routing", "plan"],
  },
  {
    name: "explain",
    files: /^src\/explain\//,
    pure: true,
    imports: ["model", "config", "routing", "plan", "modes"],
  },
  {
    name: "history",
    files: /^src\/history\//,
    pure: true,
    imports: ["model", "config", "routing", "explain"],
  },
  { name: "host", files: /^src\/host\//, pure: false, imports: ["model", "plan"] },
  { name: "sources", files: /^src\/sources\//, pure: false, imports: ["model", "config", "manifests"] },
  {
    name: "sync",
    files: /^src\/sync\//,
    pure: false,
    imports: [
      "model",
      "config",
      "routing",
      "src/modes/driver.ts",
      "src/host/error.ts",
      // Types only: how flows are deleted.
      "src/host/netlink/conntrack.ts",
    ],
  },
  { name: "observe", files: /^src\/observe\//, pure: false, imports: [...core, "host", "sources", "sync"] },
  { name: "inspect", files: /^src\/inspect\//, pure: false, imports: [...core, ...effects] },
  { name: "page", files: /^src\/page\//, pure: false, imports: [...core, ...effects, "inspect"] },
  {
    name: "daemon",
    files: /^src\/daemon\//,
    pure: false,
    imports: [...core, ...effects, "src/inspect/usage-error.ts", "src/inspect/kernel-view.ts", "page"],
  },
  {
    name: "cli",
    files: /^src\/cli\//,
    pure: false,
    imports: [...core, ...effects, "inspect", "daemon", "page"],
  },
  {
    name: "playground",
    files: /^playground\//,
    pure: false,
    imports: [...core, ...effects, "inspect", "daemon", "page", "cli"],
  },
];

/** Only these may import the table of all modes. */
const mayKnowAllModes = ["daemon", "inspect", "cli", "playground"];

/** What pure code may take from Node: deterministic, and without effect. */
const harmless = new Set(["node:crypto", "node:net", "node:buffer"]);
const effectPattern =
  /\b(Date\.now|new Date\(\)|Math\.random|setTimeout|setInterval|process\.|console\.|performance\.)/;

const branchOnMode = /([!=]==|\bcase) "(nftables|iptables|ipvs|userspace)"/;

/** The separator of a key's parts next to a quote or a value, and verdicts as text. */
const nftTextPattern = /["'`}] \. ["'`$]|["'`](goto|jump) (\$\{|")/;

/** The only tables keyed by mode: the Mode values, and what the configuration means in each mode. */
const tablesByMode = ["src/config/modes.ts", "src/modes/index.ts"];

const mostFiles = 20;

/** Folders with more source files directly in them, with the reason. */
const largeFolders: Readonly<Record<string, string>> = {
  "src/host/netlink": "one file per part of the netlink protocols; they share message and attribute helpers",
  "src/sources/api": "the client of the API, from transport to watch; its parts use each other",
};

const mostLines = 60;

/** Longer functions, with the reason. */
const longFunctions: Readonly<Record<string, string>> = {
  "src/host/netlink/native.ts load": "declares the C functions and wraps each in one or two lines",
  "src/host/nftables/encode.ts encodeOperation": "one switch over the kinds of operation",
  "src/host/nftables/expressions.ts expressionsFor": "one switch over the kinds of statement",
  "src/modes/ipvs/foundation.ts foundationOf": "a table of rules in the order of the chains",
  "src/modes/nftables/walk.ts runRule": "one switch over the kinds of statement",
  "src/sources/api/client.ts apiClient": "closes over the connection, the credentials and the rate limit",
  "src/sources/api/source.ts apiSource": "closes over the state of the reflectors",
  "src/sources/api/transport.ts transport": "one request from connection to response, with its timers",
};

const files = ["src", "playground"]
  .flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }).map((path) => join(folder, path)),
  )
  .filter((path) => path.endsWith(".ts") && !path.endsWith(".test.ts"))
  .map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }));

describe("architecture", () => {
  it("every file belongs to a layer", () => {
    expect(files.filter(({ path }) => layerOf(path) === undefined).map(({ path }) => path)).toEqual([]);
  });

  it("a layer imports only what the table allows", () => {
    const wrong = files.flatMap(({ path, text }) => {
      const { name, imports } = layerOf(path)!;
      return importsIn(path, text)
        .filter((target) => layerOf(target)!.name !== name)
        .filter((target) => !imports.includes(layerOf(target)!.name) && !imports.includes(target))
        .map((target) => `${path} imports ${target}`);
    });
    expect(wrong).toEqual([]);
  });

  it("modes do not import each other's effects, and only a few layers know all modes", () => {
    const wrong = files
      .filter(({ path }) => !mayKnowAllModes.includes(layerOf(path)!.name))
      .filter(({ path, text }) => importsIn(path, text).includes("src/modes/index.ts"))
      .map(({ path }) => path);
    expect(wrong).toEqual([]);
  });

  it("pure files have no effects", () => {
    const wrong = files
      .filter(({ path }) => layerOf(path)!.pure)
      .flatMap(({ path, text }) => [
        ...specifiersIn(text)
          .filter((name) => name.startsWith("node:") && !harmless.has(name))
          .map((name) => `${path} imports ${name}`),
        ...withoutComments(text)
          .split("\n")
          .filter((line) => effectPattern.test(line))
          .map((line) => `${path}: ${line.trim()}`),
      ]);
    expect(wrong).toEqual([]);
  });

  it("only a mode's own files branch on its name", () => {
    const wrong = files
      .filter(({ path }) => !/^src\/(modes|plan|host)\//.test(path))
      .flatMap(({ path, text }) => {
        const lines = withoutComments(text).split("\n");
        return lines.filter((line) => branchOnMode.test(line)).map((line) => `${path}: ${line.trim()}`);
      });
    expect(wrong).toEqual([]);
  });

  it("two tables are keyed by mode", () => {
    const found = files
      .filter(({ path, text }) => path.startsWith("src/") && isKeyedByMode(withoutComments(text)))
      .map(({ path }) => path);
    expect(found.sort()).toEqual(tablesByMode);
  });

  it("only key.ts joins and splits the keys of nftables elements, and only print.ts writes nft's text", () => {
    const found = files
      .filter(({ text }) => nftTextPattern.test(withoutComments(text)))
      .map(({ path }) => path);
    expect(found.sort()).toEqual(["src/plan/nftables/key.ts", "src/plan/nftables/print.ts"]);
  });

  it("every file opens with a sentence on its job", () => {
    const wrong = files.filter(({ text }) => !/^(#!.*\n)?\/\/ [A-Z`/]/.test(text)).map(({ path }) => path);
    expect(wrong).toEqual([]);
  });

  it(`a folder has at most ${mostFiles} source files, or a reason`, () => {
    const folders = files.map(({ path }) => dirname(path));
    const large = [...new Set(folders)].filter(
      (folder) => folders.filter((each) => each === folder).length > mostFiles,
    );
    expect(large.sort()).toEqual(Object.keys(largeFolders).sort());
  });

  it(`a function has at most ${mostLines} lines, or a reason`, () => {
    const long = files.flatMap(({ path, text }) =>
      functionsIn(text)
        .filter(({ lines }) => lines > mostLines)
        .map(({ name }) => `${path} ${name}`),
    );
    expect(long.sort()).toEqual(Object.keys(longFunctions).sort());
  });

  it("a part logs under its own file name", () => {
    const wrong = files.flatMap(({ path, text }) =>
      [...text.matchAll(/\.in\("([^"]+\.ts)"\)/g)]
        .map(([, name]) => `src/${name}`)
        .filter((name) => !files.some((file) => file.path === name))
        .map((name) => `${path} logs as ${name}, which does not exist`),
    );
    expect(wrong).toEqual([]);
  });
});

function layerOf(path: string): Layer | undefined {
  return layers.find(({ files: pattern }) => pattern.test(path));
}

/** Paths of the files that it imports. */
function importsIn(path: string, text: string): string[] {
  return specifiersIn(text)
    .filter((name) => name.startsWith("."))
    .map((name) => relative(root, resolve(dirname(join(root, path)), name)));
}

function specifiersIn(text: string): string[] {
  return [...text.matchAll(/(?:from|import)\s*\(?\s*"([^"]+)"/g)].map((match) => match[1]!);
}

const modeNames = ["nftables", "iptables", "ipvs", "userspace"];

/** Declares a Record over ModeName, or an object literal in which each mode is a key. */
function isKeyedByMode(text: string): boolean {
  const isKey = (name: string) => new RegExp(`(^\\s*|[{,]\\s*)${name}(:| *[,}])`, "m");
  const literals = [...text.matchAll(/= \{(?:[^{}]|\{[^{}]*\})*\}/g)].map(([literal]) => literal);
  return (
    /Record<\s*ModeName\b/.test(text) ||
    literals.some((literal) => modeNames.every((name) => isKey(name).test(literal)))
  );
}

function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, "").replace(/\/\/.*$/gm, "");
}

/** Every function with a body; those without a name have the name of what contains them. */
function functionsIn(text: string): { readonly name: string; readonly lines: number }[] {
  const found: { name: string; lines: number }[] = [];
  const visit = (value: unknown, outer: string) => {
    if (Array.isArray(value)) for (const item of value) visit(item, outer);
    if (!isNode(value)) return;
    const name = nameOf(value) ?? outer;
    if (/^(Function(Declaration|Expression)|ArrowFunctionExpression)$/.test(value.type))
      found.push({ name, lines: text.slice(value.start, value.end).split("\n").length });
    for (const child of Object.values(value)) visit(child, name);
  };
  visit(parseAst(text, { lang: "ts" }), "");
  return found;
}

type Node = { readonly type: string; readonly start: number; readonly end: number };

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && "type" in value;
}

/** Of a declaration, or of a property or method. */
function nameOf(node: Node): string | undefined {
  const { id, key } = node as { id?: { name?: string } | null; key?: { name?: string } | null };
  return id?.name ?? key?.name;
}
