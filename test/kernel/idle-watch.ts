// Watches nf_tables in a process without other work, and prints whether code that waits for an event runs before a timer does.
import { watchTables } from "../../src/host/netlink/tableevents.ts";

const event = Promise.withResolvers<void>();
const listener = { changed: () => {}, committed: () => event.resolve(), lost: () => {} };
await watchTables(listener, new AbortController().signal, { netns: process.argv[2]! });
setTimeout(() => end("timer"), 10_000);
void event.promise.then(() => end("event"));
// After the start of Node.js, whose own work would run what waits.
setTimeout(() => process.stdout.write("watching\n"), 100);

function end(first: string): void {
  process.stdout.write(`${first}\n`);
  process.exit();
}
