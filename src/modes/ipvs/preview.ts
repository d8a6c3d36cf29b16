// What ipvs mode would write, as ipvsadm, ip, ipset and iptables-save print it and as JSON.
import type { ValidConfig } from "../../config/config.ts";
import { print } from "../../plan/ipvs/print.ts";
import type { IpvsPlan } from "../../plan/ipvs/types.ts";
import type { Routes } from "../../routing/routes.ts";
import { chainsJson, underFamily } from "../iptables/preview.ts";
import type { Preview } from "../mode.ts";
import { compile, optionsOf } from "./compile.ts";

export function previewIpvs(routes: Routes, config: Pick<ValidConfig, "ipvs">): Preview {
  const plan = compile(null, routes, optionsOf(config));
  return { text: () => underFamily(routes, print(plan)), json: () => planJson(plan) };
}

function planJson(plan: IpvsPlan): object {
  const servers = [...plan.servers.entries()].map(([key, claims]) => {
    const { owner, server } = claims[0]!;
    return [key, { owner, ...server, destinations: [...server.destinations.keys()] }] as const;
  });
  return {
    servers: Object.fromEntries(servers.sort(([a], [b]) => (a < b ? -1 : 1))),
    addresses: [...plan.addresses.keys()].sort(),
    sets: plan.sets,
    entries: [...plan.entries.keys()].sort(),
    ...chainsJson(plan.tables),
  };
}
