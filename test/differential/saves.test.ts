// How two saves are compared: the order of Services is chance, every other line and its place counts.
import { expect, it } from "vitest";
import { differingLines } from "./saves.ts";

const last =
  '-m comment --comment "kubernetes service nodeports; NOTE: this must be the last rule in this chain"';
const save = (...rules: readonly string[]): string => ["*nat", ...rules, "COMMIT", ""].join("\n");

it("the order of Services and of the node's addresses does not count, that within other chains does", () => {
  const services = ["-A KUBE-SERVICES -d 10.0.0.1", "-A KUBE-SERVICES -d 10.0.0.2"];
  const ports = [`-A KUBE-SERVICES -d 192.168.0.2 ${last}`, `-A KUBE-SERVICES -d 192.168.1.2 ${last}`];
  const forward = save(...services, ...ports);
  expect(differingLines(forward, save(...services.toReversed(), ...ports.toReversed()))).toEqual([]);
  expect(differingLines(forward, save(ports[0]!, ...services, ports[1]!))).toHaveLength(2);
  expect(differingLines(forward, save(...services, ports[0]!))).toEqual([`only kube-proxy: nat ${ports[1]}`]);
  const own = ["-A KUBE-SVC-X -j A", "-A KUBE-SVC-X -j B"];
  expect(differingLines(save(...own), save(...own.toReversed()))).toHaveLength(4);
});
