// Starts the tool with what V8 compiled of it when it was built: commands that look at a cluster begin sooner.
import { readFileSync } from "node:fs";
import Module, { createRequire } from "node:module";
import { join } from "node:path";
import { Script } from "node:vm";

/** A hash of the source, which both files carry, and the end of its line. */
const markLength = 65;

const program = join(__dirname, "turnout.cjs");
// The bundle is ASCII, and V8 need not look for more.
const source = readFileSync(program, "latin1");
const cachedData = compiled(source);
const script = new Script(Module.wrap(source), {
  filename: program,
  // Of another V8, or one with other flags, it is refused, and V8 compiles anew.
  ...(cachedData === null ? {} : { cachedData }),
});
const itself = { exports: {} };
script.runInThisContext()(itself.exports, createRequire(program), itself, program, __dirname);

/** Null when there is nothing that belongs to this very source: V8 itself would only look at its length. */
function compiled(text: string): Buffer | null {
  try {
    const bytes = readFileSync(join(__dirname, "turnout.compiled"));
    const mark = bytes.toString("latin1", 0, markLength);
    return mark.length === markLength && text.endsWith(mark) ? bytes.subarray(markLength) : null;
  } catch {
    return null;
  }
}
