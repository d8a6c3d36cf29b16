// The format of log lines, which of them are shown, and to which stream they go.
import { describe, expect, it } from "vitest";
import { plainLog } from "../../../test/support/log-lines.ts";
import { manualClock } from "../../../test/support/manual-clock.ts";
import { type LogSettings, openLog } from "./log.ts";

const at = new Date(2026, 10, 5, 20, 14, 2, 7).getTime();

function capture(settings: Partial<LogSettings> = {}) {
  const clock = manualClock(at);
  const out: string[] = [];
  const err: string[] = [];
  const opened = openLog(
    { ...plainLog, ...settings },
    { clock, stdout: (text) => out.push(text), stderr: (text) => err.push(text), pid: 42 },
  );
  return { ...opened, log: opened.log.in("observe/health.ts"), clock, out, err };
}

describe("text", () => {
  it("has klog's header, a quoted message and key=value pairs", () => {
    const { log, err } = capture();
    log.info("Synced", { family: "IPv4", ports: 3, ok: true, list: ["a", 1], nothing: null });
    expect(err).toEqual([
      'I1105 20:14:02.007000      42 health.ts:1] "Synced" family="IPv4" ports=3 ok=true list=["a",1] nothing=null\n',
    ]);
  });

  it("shows errors first of all fields, then the logger's name and keys", () => {
    const { log, err } = capture();
    log.named("sync").named("nft").with({ family: "IPv6" }).error(new Error("no"), "Cannot sync", { try: 2 });
    expect(err).toEqual([
      'E1105 20:14:02.007000      42 health.ts:1] "Cannot sync" err="no" logger="sync.nft" family="IPv6" try=2\n',
    ]);
  });

  it("escapes what the cluster supplied", () => {
    const { log, err } = capture();
    log.info("a\nb", {
      name: 'x"\n\u001b[31m\u202e\u200b\u{e0001}é世\ud800\\',
      deep: { name: "\u001b\u009b\u202e" },
    });
    expect(err[0]).toContain(
      String.raw`"a\nb" name="x\"\n\x1b[31m\u202e\u200b\U000e0001é世\ufffd\\" deep={"name":"\u001b\u009b\u202e"}`,
    );
    expect(err[0]!.split("\n")).toHaveLength(2);
  });

  it("a later value of a key wins, an equal one keeps its place", () => {
    const { log, err } = capture();
    log.with({ a: 1, b: 2 }).info("x", { b: 2, a: 3 });
    expect(err[0]).toMatch(/"x" b=2 a=3\n$/);
  });
});

describe("json", () => {
  it("has klog's keys: ts in milliseconds, caller, msg, v for info and err for errors", () => {
    const { log, err } = capture({ format: "json", verbosity: 4 });
    log.v(4, "Synced", { ports: 3 });
    log.named("sync").error(new Error("no"), "Cannot sync", { family: "IPv4" });
    expect(err.map((line) => JSON.parse(line))).toEqual([
      { ts: at, caller: "observe/health.ts:1", msg: "Synced", v: 4, ports: 3 },
      {
        ts: at,
        logger: "sync",
        caller: "observe/health.ts:1",
        msg: "Cannot sync",
        family: "IPv4",
        err: "no",
      },
    ]);
    expect(err[0]).toMatch(/^\{"ts":.*,"caller":.*,"msg":.*,"v":4,"ports":3\}\n$/);
  });
});

describe("verbosity", () => {
  it("shows entries up to -v and can change at run time", () => {
    const { log, err, setVerbosity } = capture({ verbosity: 2 });
    log.v(2, "two");
    log.v(3, "three");
    setVerbosity(3);
    log.v(3, "three again");
    expect(err.map((line) => line.split('"')[1])).toEqual(["two", "three again"]);
  });

  it.each([
    ["health", true],
    ["heal*", true],
    ["h?alth", true],
    ["[f-h]ealth", true],
    ["[^a]ealth", true],
    ["health.ts", false],
    ["observe/health", false],
    ["[", false],
    ["hea+lth", false],
  ])("vmodule %s=4 raises health.ts: %s", (filePattern, raised) => {
    const { log } = capture({ vmodule: [{ filePattern, verbosity: 4 }] });
    expect([log.enabled(4), log.enabled(5), log.in("sync/loop.ts").enabled(1)]).toEqual([
      raised,
      false,
      false,
    ]);
  });

  it("the first matching vmodule pattern counts, and never lowers -v", () => {
    const { log } = capture({
      verbosity: 2,
      vmodule: [
        { filePattern: "health", verbosity: 1 },
        { filePattern: "*", verbosity: 9 },
      ],
    });
    expect([log.enabled(2), log.enabled(3), log.in("x.ts").enabled(9)]).toEqual([true, false, true]);
  });
});

describe("streams", () => {
  it("split: info to stdout, errors to stderr", () => {
    const { log, out, err } = capture({ splitStream: true });
    log.info("one");
    log.error(null, "two");
    expect([out.length, err.length]).toEqual([1, 1]);
  });

  it("buffers info until the buffer is full, the flush time, an error or a flush", () => {
    const { log, out, err, clock, flush } = capture({ splitStream: true, infoBufferSize: 130 });
    log.info("1");
    log.info("2");
    expect(out).toEqual([]);
    log.info("3");
    expect(out.join("").match(/"\d"/g)).toEqual(['"1"', '"2"']);
    clock.advance(5000);
    expect(out.join("").match(/"\d"/g)).toEqual(['"1"', '"2"', '"3"']);
    log.info("4");
    log.error(null, "5");
    expect([out.join("").includes('"4"'), err.length]).toEqual([true, 1]);
    log.info("6");
    flush();
    expect(out.join("")).toContain('"6"');
    expect(clock.pending()).toBe(0);
  });

  it("a line longer than the buffer is written whole", () => {
    const { log, out } = capture({ splitStream: true, infoBufferSize: 10 });
    log.info("longer than ten");
    expect(out).toHaveLength(1);
  });
});
