// This process as Linux and Node.js describe it.
import { readdirSync, readFileSync } from "node:fs";
import { getHeapStatistics } from "node:v8";
import type { ProcessView } from "./process.ts";

export const systemProcess: ProcessView = {
  readText: (path) => readFileSync(path, "utf8"),
  countEntries: (directory) => readdirSync(directory).length,
  cpuSeconds() {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
  },
  residentBytes: () => process.memoryUsage.rss(),
  heapUsedBytes: () => process.memoryUsage().heapUsed,
  heapLimitBytes: () => getHeapStatistics().heap_size_limit,
};
