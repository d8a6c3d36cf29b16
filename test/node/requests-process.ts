// A process that sends HTTP requests at a steady rate until its input ends, then prints how many failed: ADDRESS RATE
import { Agent, get } from "node:http";
import { count, createSchedule, type Ended } from "./requests.ts";

const [, , address, rate] = process.argv;
const schedule = createSchedule(Number(rate));
/** A request that takes longer has failed. */
const limitMs = 1000;

// A connection of its own for each request: each one is balanced.
const agent = new Agent({ keepAlive: false });
const ended: Ended[] = [];
const started = performance.now();
let sent = 0;
let stopped = false;

const timer = setInterval(() => {
  for (let left = schedule.due(performance.now() - started); left > 0; left--) send();
}, 1000 / Number(rate));
process.stdin.resume().once("end", () => {
  clearInterval(timer);
  stopped = true;
  printWhenDone();
});

function send(): void {
  const index = sent++;
  let done = false;
  const end = (reason: string | null): void => {
    if (done) return;
    done = true;
    ended.push({ index, reason });
    printWhenDone();
  };
  const request = get(`http://${address}/hostname`, { agent, timeout: limitMs }, (response) => {
    response.resume();
    response.once("end", () => end(response.statusCode === 200 ? null : String(response.statusCode)));
    response.once("error", (error) => end(codeOf(error)));
  });
  request.once("timeout", () => {
    end("timeout");
    request.destroy();
  });
  request.once("error", (error) => end(codeOf(error)));
}

function codeOf({ code, message }: NodeJS.ErrnoException): string {
  return code ?? message;
}

function printWhenDone(): void {
  if (!stopped || ended.length < sent) return;
  process.stdout.write(JSON.stringify(count(ended, schedule.pausedMs)), () => process.exit(0));
}
