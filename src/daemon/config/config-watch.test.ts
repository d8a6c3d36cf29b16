// A configuration file that changes under a running daemon which applies changes.
import { expect, it } from "vitest";
import { logLines } from "../../../test/support/log-lines.ts";
import { manualClock } from "../../../test/support/manual-clock.ts";
import { completeConfig } from "../../config/complete.ts";
import type { ValidConfig } from "../../config/config.ts";
import { followConfig } from "./config-watch.ts";

const header = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: nftables\n";

it("apply-live-only: puts in force what it can, and logs what requires a restart", async () => {
  const { write, pass, lines, running } = setUp(null);
  write("nftables: {masqueradeAll: true}\nhealthzBindAddress: 127.0.0.1:1\n");
  await pass(3);
  expect(running().masqueradeAll).toBe(true);
  expect(lines()).toHaveLength(2);
  expect(lines()[0]).toMatch(
    /^E.*"Changed setting is not in force" err="requires a restart" field="healthzBindAddress"/,
  );
  expect(lines()[1]).toMatch(
    /^I.*"Changed setting is in force" field="nftables.masqueradeAll" from=false to=true/,
  );
  await pass(5);
  expect(lines()).toHaveLength(2);
});

it("behaviour/3: exits once to put in force what requires a restart", async () => {
  const { write, pass, lines, running, exits } = setUp();
  write("nftables: {masqueradeAll: true}\nhealthzBindAddress: 127.0.0.1:1\n");
  await pass(5);
  expect(exits()).toBe(1);
  expect(running().masqueradeAll).toBe(false);
  expect(lines()).toHaveLength(2);
  expect(lines()[0]).toMatch(
    /^I.*"Changed setting requires a restart" field="healthzBindAddress" from=".*" to="127.0.0.1:1"/,
  );
  expect(lines()[1]).toMatch(/^I.*"Exiting to restart with the changed configuration"/);
});

it("behaviour/3: continues where this node could not start with the change, and applies the rest", async () => {
  const { write, pass, lines, running, exits } = setUp("this kernel has no ip_vs");
  write("nftables: {masqueradeAll: true}\nhealthzBindAddress: 127.0.0.1:1\n");
  await pass(5);
  expect(exits()).toBe(0);
  expect(running().masqueradeAll).toBe(true);
  expect(lines()[0]).toMatch(/^E.*"Changed setting is not in force" err="this kernel has no ip_vs"/);
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

it("logs when the machine refuses, and changes nothing", async () => {
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

/** `refusal`: why the node could not start; "" it could; null: it does not restart. */
function setUp(refusal: string | null = "") {
  const clock = manualClock();
  const { log, lines } = logLines(clock);
  const end = new AbortController();
  let text: string | null = header;
  let config = completed(header);
  let refused = false;
  let exits = 0;
  const restart = {
    refusal: async () => refusal || null,
    exit: () => {
      exits++;
    },
  };
  const complete = (given: string) => completeConfig({}, { name: "config.yaml", text: given });
  followConfig(
    "config.yaml",
    header,
    {
      clock,
      log,
      complete,
      restart: refusal === null ? null : restart,
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
    exits: () => exits,
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
