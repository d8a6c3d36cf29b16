// Profiles that the test takes itself: for how long, and one at a time.
import type { IncomingMessage } from "node:http";
import { expect, it } from "vitest";
import type { Answer } from "./http.ts";
import { profilingPages, type TakeProfile } from "./profiling.ts";

function profilePage(take: TakeProfile): (query: string) => Promise<Answer> {
  const page = profilingPages(() => {}, take).get("/debug/pprof/profile")!;
  return async (query) => page({ url: `/debug/pprof/profile${query}` } as IncomingMessage);
}

it("takes one profile at a time, and the next one when the last has ended or failed", async () => {
  const { promise, resolve } = Promise.withResolvers<string>();
  const answers = [promise, Promise.reject(new Error("no inspector")), Promise.resolve("{}")];
  const get = profilePage(() => answers.shift()!);
  const first = get("");
  expect(await get("")).toMatchObject({ status: 500, body: "a profile is being taken already\n" });
  resolve("{}");
  expect(await first).toMatchObject({ status: 200, body: "{}" });
  await expect(get("")).rejects.toThrow("no inspector");
  expect(await get("")).toMatchObject({ status: 200 });
});

it("profiles for 30 seconds unless another time is given, and for five minutes at most", async () => {
  const taken: number[] = [];
  const get = profilePage(async (seconds) => {
    taken.push(seconds);
    return "{}";
  });
  for (const query of ["", "?seconds=2.5", "?seconds=1000", "?seconds=-1", "?seconds=x"]) await get(query);
  expect(taken).toEqual([30, 2.5, 300, 30, 30]);
});
