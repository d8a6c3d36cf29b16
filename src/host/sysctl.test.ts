// Kernel settings are written only where they differ, in order, and an error names the file.

import { describe, expect, it } from "vitest";
import type { SysctlTarget } from "../model/sysctl.ts";
import { applySysctls, isTcpLiberal, setOomScore, unwritableSysctls } from "./sysctl.ts";

const max: SysctlTarget = { file: "/proc/max", value: 131_072, when: "differs" };
const hashSize: SysctlTarget = { file: "/sys/hashsize", value: 32_768, when: "below" };

function machine(start: Record<string, string>, readOnly: readonly string[] = []) {
  const content = new Map(Object.entries(start));
  const written: string[] = [];
  return {
    written,
    files: {
      read(file: string) {
        const text = content.get(file);
        if (text === undefined) throw new Error("ENOENT");
        return text;
      },
      write(file: string, text: string) {
        if (readOnly.includes(file)) throw new Error("EROFS");
        content.set(file, text);
        written.push(`${file} ${text}`);
      },
    },
  };
}

describe("sysctls", () => {
  it("02/18 what is at its target is not written; the hash size is still read", () => {
    const { files, written } = machine({ "/proc/max": "131072\n", "/sys/hashsize": "16384\n" });
    expect(applySysctls([max, hashSize], files)).toEqual([
      { file: "/sys/hashsize", from: 16_384, to: 32_768 },
    ]);
    expect(written).toEqual(["/sys/hashsize 32768"]);
  });

  it("02/19 a hash size that must grow and cannot be written is fatal; one that is large enough is not", () => {
    const small = machine({ "/proc/max": "1\n", "/sys/hashsize": "16384\n" }, ["/sys/hashsize"]);
    expect(() => applySysctls([max, hashSize], small.files)).toThrow(
      "Cannot set /sys/hashsize to 32768: EROFS",
    );
    expect(small.written).toEqual(["/proc/max 131072"]);
    const large = machine({ "/proc/max": "1\n", "/sys/hashsize": "65536\n" }, ["/sys/hashsize"]);
    expect(applySysctls([max, hashSize], large.files)).toHaveLength(1);
  });

  it("a hash size that cannot be read is fatal, another setting is then written", () => {
    expect(() => applySysctls([hashSize], machine({}).files)).toThrow("Cannot read /sys/hashsize: ENOENT");
    expect(applySysctls([max], machine({}).files)).toHaveLength(1);
  });

  it("stops at the first refusal", () => {
    const { files, written } = machine({}, ["/proc/max"]);
    expect(() => applySysctls([max, { ...max, file: "/proc/other" }], files)).toThrow("/proc/max");
    expect(written).toEqual([]);
  });
});

it("behaviour/3: finds what differs and may not be written, and writes nothing", () => {
  const { files, written } = machine({ "/proc/max": "1\n", "/sys/hashsize": "65536\n", "/proc/set": "7" });
  const set: SysctlTarget = { file: "/proc/set", value: 7, when: "differs" };
  const read = (file: string) => files.read(file);
  expect(unwritableSysctls([max, hashSize, set], read, () => false)).toEqual([max]);
  expect(unwritableSysctls([max, hashSize, set], read, () => true)).toEqual([]);
  expect(written).toEqual([]);
});

describe("the OOM score", () => {
  it("is written to the process itself", async () => {
    const { files, written } = machine({});
    expect(await setOomScore(-999, files, async () => {})).toBeNull();
    expect(written).toEqual(["/proc/self/oom_score_adj -999"]);
  });

  it("02/40 is tried twice, 100 ms apart; a refusal is returned, not thrown", async () => {
    const pauses: number[] = [];
    const { files } = machine({}, ["/proc/self/oom_score_adj"]);
    const refused = await setOomScore(-999, files, async (ms) => void pauses.push(ms));
    expect(refused?.message).toBe("Cannot set /proc/self/oom_score_adj to -999: EROFS");
    expect(pauses).toEqual([100]);
  });
});

it.each([
  ["1", true],
  ["3", true],
  ["0", false],
  ["", false],
])("10/17 nf_conntrack_tcp_be_liberal of %j: liberal is %s", (value, liberal) => {
  expect(isTcpLiberal(() => value)).toBe(liberal);
});
