// How a program ends: with the code its command resolves with.
import { printable } from "../model/printable.ts";
import { printCrash } from "./crash.ts";

/** A bug, wherever it shows, ends it with 2; so does a command that waits for something that cannot come any more. */
export function exitWith(code: Promise<number>): void {
  const end = (bug: unknown) => {
    process.stderr.write(`${printable(printCrash(bug))}\n`);
    process.exit(2);
  };
  const starved = () =>
    end(new Error("The command has not ended, and nothing is left that it could wait for"));
  process.once("uncaughtException", end);
  process.once("beforeExit", starved);
  code.then(async (value) => {
    process.off("beforeExit", starved);
    await Promise.all([process.stdout, process.stderr].map(written));
    // Not waited for is what is left to do for nobody: collecting garbage takes 50 ms where there was much to read.
    process.exit(value);
  }, end);
}

/** When all that was written has arrived, or nobody reads it any more. */
function written(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => {
    stream.write("", () => resolve());
  });
}
