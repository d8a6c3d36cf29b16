// A configuration file that changes under a running daemon which applies changes.
import { expect, it } from "vitest";
import { logLines } from "../../test/support/log-lines.ts";
import { manualClock } from "../../test/support/manual-clock.ts";
import { completeConfig } from "../config/complete.ts";
import type { ValidConfig } from "../config/config.ts";
import { followConfig } from "./config-changes.ts";

const header = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: nftables\n";

it("puts in force what it can, tells what, and what needs a restart", async () => {
  const { write, pass, lines, running } = setUp();
  write("nftables: {masqueradeAll: true}\nhealthzBindAddress: 127.0.0.1:1\n");
  await pass(3);
  expect(running().masqueradeAll).toBe(true);
  expect(lines()).toHaveLength(2);
  expect(lines()[0]).toMatch(
    /^E.*"Changed setting is not in force" err="needs a restart" field="healthzBindAddress"/,
  );
  expect(lines()[1]).toMatch(
    /^I.*"Changed setting is in force" field="nftables.masqueradeAll" from=false to=true/,
  );
  await pass(5);
  expect(lines()).toHaveLength(2);
});

it("keeps the running configuration when the file is broken, half written or gone", async () => {
  const { write, remove, pass, lines, running } = setUp();
  write("nftables: {masqueradeAll: 7}\n");
  await pass(3);
  expect(lines()).toHaveLength(1);
  expect(lines()[0]).toMatch(/^E.*the running one stays".*file="config.yaml"/);
  remove();
  await pass(3);
  for (const text of ["nft", "nftables: {masq", "nftables: {masqueradeAll: true}\n"]) {
    write(text);
    await pass(1);
  }
  expect(running().masqueradeAll).toBe(false);
  await pass(1);
  expect(running().masqueradeAll).toBe(true);
  expect(lines()).toHaveLength(2);
});

it("tells when the machine refuses, and nothing is changed", async () => {
  const { write, pass, lines, running, refuse } = setUp();
  refuse();
  write("nftables: {masqueradeAll: true}\n");
  await pass(3);
  expect(running().masqueradeAll).toBe(false);
  expect(lines()[0]).toMatch(
    /^E.*"Cannot put changed settings in force" err="no" fields="nftables.masqueradeAll"/,
  );
});

it("stops with the signal", async () => {
  const { write, pass, lines, stop } = setUp();
  stop();
  write("nftables: {masqueradeAll: true}\n");
  await pass(3);
  expect(lines()).toEqual([]);
});

function setUp() {
  const clock = manualClock();
  const { log, lines } = logLines(clock);
  const end = new AbortController();
  let text: string | null = header;
  let config = completed(header);
  let refused = false;
  const complete = (given: string) => completeConfig({}, { name: "config.yaml", text: given });
  followConfig(
    "config.yaml",
    header,
    {
      clock,
      log,
      complete,
      running: () => config,
      read: async () => {
        if (text === null) throw new Error("ENOENT");
        return text;
      },
      apply: async (next) => {
        if (refused) throw new Error("no");
        config = next;
      },
    },
    end.signal,
  );
  return {
    lines,
    running: () => config,
    stop: () => end.abort(),
    refuse: () => {
      refused = true;
    },
    remove: () => {
      text = null;
    },
    write: (more: string) => {
      text = `${header}${more}`;
    },
    pass: async (seconds: number) => {
      for (let i = 0; i < seconds; i++) {
        clock.advance(1000);
        await new Promise(setImmediate);
      }
    },
  };
}

function completed(text: string): ValidConfig {
  const made = completeConfig({}, { name: "config.yaml", text });
  if (!made.ok) throw new Error(made.error);
  return made.config;
}
