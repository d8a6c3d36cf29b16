// Exits with the code that the command resolves with.
import { printable } from "../model/printable.ts";
import { printCrash } from "./crash.ts";

/** An uncaught error exits with 2; so does a command that is still pending when the event loop is empty. */
export function exitWith(code: Promise<number>): void {
  const crash = (error: unknown) => {
    process.stderr.write(`${printable(printCrash(error))}\n`);
    process.exit(2);
  };
  const stalled = () => crash(new Error("the command is pending, but the event loop is empty"));
  process.once("uncaughtException", crash);
  process.once("beforeExit", stalled);
  code.then(async (value) => {
    process.off("beforeExit", stalled);
    await Promise.all([process.stdout, process.stderr].map(written));
    // Exits without a final garbage collection, which takes 50 ms after a large read.
    process.exit(value);
  }, crash);
}

/** Resolves when all output is written, or its reader is gone. */
function written(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => {
    stream.write("", () => resolve());
  });
}
