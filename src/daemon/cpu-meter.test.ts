// The meter counts work of this process and of its children, and not the time they wait.
import { spawnSync } from "node:child_process";
import { expect, it } from "vitest";
import { run, starter } from "../host/iptables/command.ts";
import { openCpuMeter } from "./cpu-meter.ts";

it("counts the work of this process", () => {
  const meter = openCpuMeter();
  const before = meter();
  const start = process.cpuUsage();
  const used = () => {
    const { user, system } = process.cpuUsage(start);
    return (user + system) / 1000;
  };
  while (used() < 30);
  expect(meter() - before).toBeGreaterThanOrEqual(30);
});

const busy = ["-e", "const s = process.cpuUsage(); while (process.cpuUsage(s).user < 200_000);"];

/** What the meter counts from now on, without the work of this process. */
function ofPrograms(meter: () => number): () => number {
  const [before, own] = [meter(), process.cpuUsage()];
  return () => {
    const { user, system } = process.cpuUsage(own);
    return meter() - before - (user + system) / 1000;
  };
}

it("counts the work of programs that the host has run", async () => {
  const counted = ofPrograms(openCpuMeter());
  const program = run(starter(), process.execPath, busy);
  expect(counted()).toBeLessThan(100);
  await program;
  expect(counted()).toBeGreaterThanOrEqual(190);
});

it("reads what programs have used only when one has ended", () => {
  let ended = 0;
  const counted = ofPrograms(openCpuMeter(() => ended));
  spawnSync(process.execPath, busy);
  expect(counted()).toBeLessThan(100);
  ended++;
  expect(counted()).toBeGreaterThanOrEqual(190);
});

it("does not count time without work", () => {
  let ended = 0;
  const meter = openCpuMeter(() => ended);
  const before = meter();
  spawnSync("sleep", ["0.5"]);
  ended++;
  expect(meter() - before).toBeLessThan(250);
});
