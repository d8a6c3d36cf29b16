// Real packets and stories against our own daemon in iptables mode on the legacy back end.
import { join } from "node:path";
import { afterAll } from "vitest";
import { describeProgram } from "./conformance.ts";
import { onLegacy, reasonWithoutLegacy } from "./legacy-tools.ts";
import { kubeProxyProgram } from "./program.ts";
import { reasonNotToRun } from "./site.ts";

const legacy = onLegacy(join(import.meta.dirname, "..", "..", "bin", "kube-proxy"));
afterAll(() => legacy.remove());

// There are no events of a flush here: the canary detects it, once a period.
const often = { syncPeriod: "500ms" };

const candidate = {
  title: "turnout in iptables mode on the legacy back end",
  program: "turnout",
  mode: kubeProxyProgram(legacy.path, "iptables", undefined, often),
  backEnd: "legacy",
  reasonToSkip: reasonWithoutLegacy ?? reasonNotToRun(),
} as const;
describeProgram(candidate);
