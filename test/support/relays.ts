// Relays for tests, with everything ordinary filled in; closed after the test.

import { FdBudget } from "../../src/host/relay/fd-budget.ts";
import type { Relay, RelayOptions } from "../../src/host/relay/relay.ts";
import { openTcpRelay, type TcpRelayOptions } from "../../src/host/relay/tcp.ts";
import { openUdpRelay, type UdpRelayOptions } from "../../src/host/relay/udp.ts";
import { closeAfterTest, host } from "./sockets.ts";

type Some<Options> = Partial<Options> & Pick<RelayOptions, "choose">;

/** To one backend on loopback. */
export const to = (port: number) => () => ({ address: host, port });

export async function tcpRelay(options: Some<TcpRelayOptions>): Promise<Relay> {
  return closed(await openTcpRelay({ ...usual(), dialMs: [1000], ...options }));
}

export async function udpRelay(options: Some<UdpRelayOptions>): Promise<Relay> {
  return closed(await openUdpRelay({ ...usual(), idleMs: 60_000, ...options }));
}

function usual() {
  return { host, port: 0, limit: 1000, room: new FdBudget(50_000) };
}

function closed(relay: Relay): Relay {
  // A test may have closed it itself.
  closeAfterTest(() => relay.close(true).catch(() => {}));
  return relay;
}
