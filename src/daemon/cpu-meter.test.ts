// The meter counts work of this process and of its children, and not the time they wait.
import { spawnSync } from "node:child_process";
import { expect, it } from "vitest";
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

it("counts the work of programs that it started", () => {
  const meter = openCpuMeter();
  const [before, own] = [meter(), process.cpuUsage()];
  const busy = "const s = process.cpuUsage(); while (process.cpuUsage(s).user < 200_000);";
  spawnSync(process.execPath, ["-e", busy]);
  const { user, system } = process.cpuUsage(own);
  expect(meter() - before - (user + system) / 1000).toBeGreaterThanOrEqual(190);
});

it("does not count time without work", () => {
  const meter = openCpuMeter();
  const before = meter();
  spawnSync("sleep", ["0.5"]);
  expect(meter() - before).toBeLessThan(250);
});
