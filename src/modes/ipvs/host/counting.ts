// Reads what virtual servers have counted, and follows the driver's changes so that no count is lost with a server.
import { HostError } from "../../../host/error.ts";
import type { IpvsHost } from "../../../host/ipvs/host.ts";
import type { Moment } from "../../../model/clock.ts";
import { serverKey } from "../../../plan/ipvs/names.ts";
import type { IpvsPlan, OwnedOperation, ServerId } from "../../../plan/ipvs/types.ts";
import type { Counted } from "../../driver.ts";
import { ServerCounts } from "../server-counts.ts";

export type CountingOptions = {
  readonly now: () => Moment;
  /** Whether real servers are counted too. */
  readonly endpoints: boolean;
};

export class Counting {
  readonly #host: Pick<IpvsHost, "readConnections" | "readConnectionsOf">;
  readonly #options: CountingOptions;
  readonly #counts = new ServerCounts();

  constructor(host: Pick<IpvsHost, "readConnections" | "readConnectionsOf">, options: CountingOptions) {
    this.#host = host;
    this.#options = options;
  }

  /** `plan` null: nothing is known to be there. */
  async read(plan: IpvsPlan | null, signal: AbortSignal): Promise<Counted> {
    const { endpoints, now } = this.#options;
    if (plan !== null) this.#counts.read(await this.#host.readConnections(endpoints, signal), plan, now());
    return { ports: this.#counts.counts(endpoints), gaps: this.#counts.gaps };
  }

  /** Before these are applied: a server that leaves a ServicePort which stays is read again. */
  async leaving(operations: readonly OwnedOperation[], plan: IpvsPlan, signal: AbortSignal): Promise<void> {
    for (const operation of operations) {
      if (operation.kind !== "delete server") continue;
      const { server, owner } = operation;
      const key = serverKey(server);
      if (owner === null || !plan.fragments.has(owner) || !this.#counts.isKnown(key)) continue;
      this.#counts.leaves(key, owner, await this.#connectionsOf(server, signal), this.#options.now());
    }
  }

  /** A Sync does not fail because of a count. */
  async #connectionsOf(server: ServerId, signal: AbortSignal): Promise<number | null> {
    try {
      return await this.#host.readConnectionsOf(server, signal);
    } catch (error) {
      if (error instanceof HostError) return null;
      throw error;
    }
  }

  /** After these were applied. */
  applied(operations: readonly OwnedOperation[]): void {
    for (const operation of operations)
      if (operation.kind === "add server")
        this.#counts.made(serverKey(operation.server), this.#options.now());
  }
}
