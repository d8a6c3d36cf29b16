// Compiles ServicePorts to an nftables table and prints its parts, for tests of the compiler.
import type { FamilySettings } from "../../src/config/resolve/settings.ts";
import type { ServicePort } from "../../src/model/snapshot.ts";
import { compile } from "../../src/modes/nftables/compile.ts";
import { unfold } from "../../src/plan/nftables/plan.ts";
import { printElements, printStatements } from "../../src/plan/nftables/print.ts";
import type { NftTable } from "../../src/plan/nftables/types.ts";
import { endpoint, ipv4Settings, routed, servicePort } from "./routed.ts";

export const near = endpoint("10.180.0.1:8080");
export const far = endpoint("10.180.1.1:8080");
export const restricted: FamilySettings = {
  ...ipv4Settings,
  nodePortAddresses: { kind: "some", cidrs: ["192.168.0.2/32"] },
};

export function web(more: Partial<ServicePort>): ServicePort {
  return servicePort("shop/web", more);
}

export function tableOf(ports: readonly ServicePort[], settings: FamilySettings = ipv4Settings): NftTable {
  return unfold(compile(null, routed(ports, settings)));
}

export function rulesOf(table: NftTable, chain: string): string[] {
  return table.chains.get(chain)!.rules.map(({ statements }) => printStatements(statements, table.family));
}

export function elementsOf(table: NftTable, set: string): string[] {
  return printElements(table.sets.get(set)!, table);
}
