// All modes by name. A new mode is a line here.
import type { ModeName } from "../config/modes.ts";
import { iptables } from "./iptables/mode.ts";
import { ipvs } from "./ipvs/mode.ts";
import type { Mode } from "./mode.ts";
import { nftables } from "./nftables/mode.ts";
import { userspace } from "./userspace/mode.ts";

export const modes: Readonly<Record<ModeName, Mode>> = { iptables, ipvs, nftables, userspace };
