// What userspace mode would write, as iptables-save prints it and as JSON.
import type { ValidConfig } from "../../config/config.ts";
import { print } from "../../plan/iptables/print.ts";
import type { Routes } from "../../routing/routes.ts";
import { chainsJson, underFamily } from "../iptables/preview.ts";
import type { Preview } from "../mode.ts";
import { bindAddressOf } from "./bind-address.ts";
import { compile } from "./compile.ts";
import { socketsIn, wantedRelays } from "./relays.ts";

export function previewUserspace(routes: Routes, { bindAddress }: Pick<ValidConfig, "bindAddress">): Preview {
  const bind = bindAddressOf(routes.settings.family, bindAddress);
  const plan = compile(null, routes, { bind, socketsOf: socketsIn(wantedRelays(routes)) });
  return {
    text: () => underFamily(routes, `${portsNote}\n${print(plan)}`),
    json: () => chainsJson(plan),
  };
}

const portsNote =
  "# Ports of relays are placeholders, numbered by Service: a daemon takes ports of portRange, or what the kernel gives it.";
