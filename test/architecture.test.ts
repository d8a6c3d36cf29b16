// Keeps the folder table true: which folder may import which, that pure folders stay pure, and where modes are known by name.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { describe, expect, it } from "vitest";

const source = resolve(import.meta.dirname, "../src");

const pure = {
  model: [],
  config: ["model"],
  manifests: ["model"],
  routing: ["model", "config"],
  plan: ["model"],
  modes: ["model", "config", "routing", "plan"],
  explain: ["model", "config", "routing", "plan", "modes"],
} as const;

const withEffects = {
  sources: ["model", "config", "manifests"],
  host: ["model", "config", "plan"],
  sync: [...Object.keys(pure), "sources", "host"],
  observe: [...Object.keys(pure), "sources", "host", "sync"],
  playground: [...Object.keys(pure), "sources", "host", "sync", "observe"],
  cli: [...Object.keys(pure), "sources", "host", "sync", "observe", "playground"],
} as const;

const mayImport: Record<string, readonly string[]> = { ...pure, ...withEffects };

/** What pure code may take from Node: deterministic, and without effect. */
const harmless = new Set(["node:crypto", "node:net", "node:buffer"]);
const effects =
  /\b(Date\.now|new Date\(\)|Math\.random|setTimeout|setInterval|process\.|console\.|performance\.)/;

const branchOnMode = /([!=]==|\bcase) "(nftables|iptables|ipvs|userspace)"/;

const files = readdirSync(source, { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith(".ts") && !path.endsWith(".test.ts"))
  .map((path) => ({ path, folder: path.split("/")[0]!, text: readFileSync(join(source, path), "utf8") }));

describe("architecture", () => {
  it("knows every folder", () => {
    expect(
      [...new Set(files.map(({ folder }) => folder))].filter((folder) => !(folder in mayImport)),
    ).toEqual([]);
  });

  it("lets a folder import only those below it", () => {
    const wrong = files.flatMap(({ path, folder, text }) =>
      importsOf(text)
        .filter((name) => name.startsWith("."))
        .map((name) => relative(source, resolve(dirname(join(source, path)), name)).split("/")[0]!)
        .filter((target) => target !== folder && !mayImport[folder]!.includes(target))
        .map((target) => `${path} imports ${target}/`),
    );
    expect(wrong).toEqual([]);
  });

  it("keeps pure folders free of effects", () => {
    const wrong = files
      .filter(({ folder }) => folder in pure)
      .flatMap(({ path, text }) => [
        ...importsOf(text)
          .filter((name) => name.startsWith("node:") && !harmless.has(name))
          .map((name) => `${path} imports ${name}`),
        ...withoutComments(text)
          .split("\n")
          .filter((line) => effects.test(line))
          .map((line) => `${path}: ${line.trim()}`),
      ]);
    expect(wrong).toEqual([]);
  });

  it("asks for a mode by its name in the folders of modes only: elsewhere tables say what a mode is", () => {
    const wrong = files
      .filter(({ folder }) => !["modes", "plan", "host", "explain"].includes(folder))
      .flatMap(({ path, text }) => {
        const lines = withoutComments(text).split("\n");
        return lines.filter((line) => branchOnMode.test(line)).map((line) => `${path}: ${line.trim()}`);
      });
    expect(wrong).toEqual([]);
  });

  it("opens every file with a sentence on its job", () => {
    const wrong = files.filter(({ text }) => !/^(#!.*\n)?\/\/ [A-Z`/]/.test(text)).map(({ path }) => path);
    expect(wrong).toEqual([]);
  });
});

function importsOf(text: string): string[] {
  return [...text.matchAll(/(?:from|import)\s*\(?\s*"([^"]+)"/g)].map((match) => match[1]!);
}

function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, "").replace(/\/\/.*$/gm, "");
}
