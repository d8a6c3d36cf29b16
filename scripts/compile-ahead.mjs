// Runs a program once, and writes down what V8 compiled of it, behind the mark that its source ends with.
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import Module, { createRequire } from "node:module";
import { dirname } from "node:path";
import { Script } from "node:vm";

const [, , program, mark] = process.argv;
const script = new Script(Module.wrap(readFileSync(program, "utf8")), { filename: program });
process.argv = [process.argv0, program, "--version"];
const module = { exports: {} };
script.runInThisContext()(module.exports, createRequire(program), module, program, dirname(program));
process.once("exit", () => {
  const compiled = program.replace(/\.cjs$/, ".compiled");
  writeFileSync(`${compiled}.new`, Buffer.concat([Buffer.from(`${mark}\n`), script.createCachedData()]));
  renameSync(`${compiled}.new`, compiled);
});
