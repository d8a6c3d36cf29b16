// Limits as they are read from /proc and the cgroup, where they can be read at all.
import { expect, it } from "vitest";
import { limitText, readLimits } from "./limits.ts";
import type { ProcessView } from "./metrics/process.ts";
import { systemProcess } from "./metrics/system-process.ts";

const machine: Readonly<Record<string, string>> = {
  "/proc/sys/net/netfilter/nf_conntrack_count": "120\n",
  "/proc/sys/net/netfilter/nf_conntrack_max": "262144\n",
  "/proc/self/cgroup": "0::/kubepods/pod7\n",
  "/sys/fs/cgroup/kubepods/pod7/memory.max": "134217728\n",
  "/proc/self/limits":
    "Limit                     Soft Limit           Hard Limit\nMax open files            1024      4096  files\n",
};

function viewOf(files: Readonly<Record<string, string>>): ProcessView {
  return {
    readText(path) {
      const text = files[path];
      if (text === undefined) throw new Error(`ENOENT: ${path}`);
      return text;
    },
    countEntries: () => 23,
    cpuSeconds: () => 1,
    residentBytes: () => 90_000_000,
    heapUsedBytes: () => 30_000_000,
    heapLimitBytes: () => 4_000_000_000,
  };
}

it("are read with their use", () => {
  expect(readLimits(viewOf(machine))).toEqual([
    { name: "conntrack", unit: "entries", used: 120, limit: 262_144 },
    { name: "memory", unit: "bytes", used: 90_000_000, limit: 134_217_728 },
    { name: "heap", unit: "bytes", used: 30_000_000, limit: 4_000_000_000 },
    { name: "open files", unit: "files", used: 23, limit: 1024 },
  ]);
});

it("that are not set are null, and what cannot be read is left out", () => {
  const bare = { "/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/memory.max": "max\n" };
  expect(readLimits(viewOf(bare))).toEqual([
    { name: "memory", unit: "bytes", used: 90_000_000, limit: null },
    { name: "heap", unit: "bytes", used: 30_000_000, limit: 4_000_000_000 },
  ]);
  expect(readLimits(viewOf({ ...machine, "/proc/sys/net/netfilter/nf_conntrack_max": "0\n" }))).toHaveLength(
    3,
  );
});

it("are printed with their share", () => {
  const limits = readLimits(viewOf(machine));
  expect(limits.map(limitText)).toEqual([
    "120 of 262144 entries (0 %)",
    "86 MiB of 128 MiB (67 %)",
    "29 MiB of 3815 MiB (0 %)",
    "23 of 1024 files (2 %)",
  ]);
  expect(limitText({ unit: "bytes", used: 2 ** 20, limit: null })).toBe("1 MiB, no limit");
});

it("of this process are plausible", () => {
  const found = new Map(readLimits(systemProcess).map((each) => [each.name, each]));
  expect(found.get("heap")!.limit).toBeGreaterThan(found.get("heap")!.used);
  expect(found.get("open files")!.used).toBeGreaterThan(3);
});
