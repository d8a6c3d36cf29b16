// Loopback addresses are opened only where NodePorts answer on them.
import { expect, it } from "vitest";
import { ipv4Settings, ipv6Settings } from "../../../test/support/routed.ts";
import { applySysctls } from "../../host/sysctl.ts";
import { iptablesSysctls } from "./sysctls.ts";

it("10/16 route_localnet is wanted only for NodePorts on loopback, and a refusal stops the start", () => {
  expect(iptablesSysctls(ipv6Settings)).toEqual([]);
  expect(iptablesSysctls({ ...ipv4Settings, localhostNodePorts: false })).toEqual([]);
  const targets = iptablesSysctls(ipv4Settings);
  const written: string[] = [];
  const read = () => "0\n";
  applySysctls(targets, { read, write: (file, text) => written.push(`${file} ${text}`) });
  expect(written).toEqual(["/proc/sys/net/ipv4/conf/all/route_localnet 1"]);
  const write = () => {
    throw new Error("EROFS");
  };
  expect(() => applySysctls(targets, { read, write })).toThrow(/route_localnet to 1: EROFS/);
  expect(applySysctls(targets, { read: () => "1\n", write })).toEqual([]);
});
