// A Source for the loop: each notification yields a Snapshot in which one ServicePort has changed.
import { keyed } from "../../src/model/keyed.ts";
import type { Notifier } from "../../src/model/notifier.ts";
import { noCauses, noTriggers, type Snapshot } from "../../src/model/snapshot.ts";

export async function* changedSnapshots(notifier: Notifier, signal: AbortSignal): AsyncGenerator<Snapshot> {
  for (;;) {
    await notifier.notified(signal);
    yield changedSnapshot;
  }
}

const family = { ports: keyed<never>(), changed: new Set(["shop/web/tcp/http"]), serviceCIDRs: [] };
const changedSnapshot: Snapshot = {
  ipv4: family,
  ipv6: family,
  node: null,
  triggeredAt: noTriggers,
  causes: noCauses,
  problems: [],
};
