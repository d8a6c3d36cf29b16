// Parts of the daemon: which exit code wins, and in which order parts are closed.
import { describe, expect, it } from "vitest";
import { type Part, runParts } from "./part.ts";

describe("parts of the daemon", () => {
  const closed: string[] = [];
  const failures: unknown[] = [];
  const part = (name: string, run: Part["run"]): Part => ({
    run,
    close: async () => {
      closed.push(name);
    },
  });
  const never = () => new Promise<never>(() => {});
  const done = () => Promise.resolve(null);
  const run = (parts: readonly Part[], signal = new AbortController().signal) => {
    closed.length = 0;
    failures.length = 0;
    return runParts(parts, signal, (error) => failures.push(error));
  };

  it("the first exit code wins and parts are closed in reverse order", async () => {
    const parts = [part("a", never), part("b", done), part("c", () => Promise.resolve(1)), part("d", never)];
    expect(await run(parts)).toBe(1);
    expect(closed).toEqual(["d", "c", "b", "a"]);
  });

  it("abort ends with 0, even when every part is done or fails because of it", async () => {
    const stop = new AbortController();
    const fails = (signal: AbortSignal) =>
      new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    const ended = run([part("a", done), part("b", fails)], stop.signal);
    stop.abort();
    expect(await ended).toBe(0);
    expect(closed).toEqual(["b", "a"]);
    expect(await run([part("c", fails)], stop.signal)).toBe(0);
  });

  it("an error of one part is thrown after all parts are closed", async () => {
    const fails = () => Promise.reject(new Error("bug"));
    await expect(run([part("a", never), part("b", fails)])).rejects.toThrow("bug");
    expect(closed).toEqual(["b", "a"]);
  });

  it("a part that fails to close is reported, and the others are closed", async () => {
    const failure = new Error("the socket is lost");
    const failing: Part = { run: done, close: () => Promise.reject(failure) };
    expect(await run([part("a", never), failing, part("c", () => Promise.resolve(3))])).toBe(3);
    expect(closed).toEqual(["c", "a"]);
    expect(failures).toEqual([failure]);
  });
});
