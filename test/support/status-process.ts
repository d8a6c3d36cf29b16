// A process of its own with a status socket, at the path given as argument: its heap is small, that of a test process is not.
import type { Answering } from "../../src/observe/status/socket.ts";
import { StatusSocket } from "../../src/observe/status/socket.ts";
import type { Status } from "../../src/observe/status/status.ts";
import { logLines } from "./log-lines.ts";
import { manualClock } from "./manual-clock.ts";

const answers: Answering = {
  "/": () => ({ node: "other" }) as Status,
  "/relays": () => ({}),
  "/view": () => null,
  "/cluster": () => [null],
  "/traffic": () => null,
  "/history": () => [],
};
await new StatusSocket(process.argv[2]!, answers, logLines(manualClock()).log).open();
process.stdin.resume();
process.stdout.write("open\n");
