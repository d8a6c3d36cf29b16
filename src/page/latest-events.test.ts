// A slow reader gets the latest event, and nothing is kept for it.
import { expect, it } from "vitest";
import { LatestEvents } from "./latest-events.ts";

const read = (stream: LatestEvents) => (stream.read() as Buffer | null)?.toString() ?? null;

it("events that were not read are replaced by the latest", () => {
  const stream = new LatestEvents();
  expect(read(stream)).toBeNull();
  stream.send(1);
  for (let i = 2; i <= 1000; i++) stream.send(i);
  expect(stream.readableLength).toBe("data: 1\n\n".length);
  expect(read(stream)).toBe("data: 1\n\n");
  expect(read(stream)).toBe("data: 1000\n\n");
  expect(read(stream)).toBeNull();
  stream.send(1001);
  expect(read(stream)).toBe("data: 1001\n\n");
});

it("a beat never replaces an event", () => {
  const stream = new LatestEvents();
  read(stream);
  stream.send("a");
  stream.send("b");
  stream.beat();
  expect([read(stream), read(stream), read(stream)]).toEqual(['data: "a"\n\n', 'data: "b"\n\n', null]);
  stream.beat();
  expect(read(stream)).toBe(": \n\n");
});

it("ends when it is finished, and takes nothing any more", async () => {
  const stream = new LatestEvents();
  stream.finish();
  stream.send(1);
  stream.beat();
  expect(await stream.toArray()).toEqual([]);
});
