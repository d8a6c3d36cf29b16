// The addresses on this machine's interfaces, read and watched over rtnetlink.
import type { Address, Family } from "../model/address.ts";
import { linkName } from "../plan/ipvs/types.ts";
import { type LinkAddress, readAddresses, readLinks, watchAddresses } from "./netlink/route.ts";
import type { Place } from "./netlink/socket.ts";

export type LocalAddresses = Readonly<Record<Family, readonly Address[]>>;

/** Every address on this machine's interfaces, by family, sorted; addresses of Services are not the machine's. */
export async function readLocalAddresses(place: Place): Promise<LocalAddresses> {
  return (await readAll(place)).addresses;
}

/** `services`: the link that ipvs mode keeps addresses of Services on; null: there is none. */
async function readAll(
  place: Place,
): Promise<{ readonly addresses: LocalAddresses; readonly services: number | null }> {
  const links = await readLinks(place);
  const services = links.find(({ name }) => name === linkName)?.index ?? null;
  const all = (await readAddresses(place)).filter(({ link }) => link !== services);
  const of = (family: Family) =>
    [...new Set(all.filter((each) => each.family === family).map(({ address }) => address))].sort();
  return { addresses: { ipv4: of("ipv4"), ipv6: of("ipv6") }, services };
}

/** Calls back with the new addresses whenever they differ from before. */
export async function followLocalAddresses(
  place: Place,
  first: LocalAddresses,
  onChange: (addresses: LocalAddresses) => void,
  signal: AbortSignal,
): Promise<void> {
  let known: Awaited<ReturnType<typeof readAll>> = { addresses: first, services: null };
  let reading = Promise.resolve();
  let isWaiting = false;
  const reread = () => {
    if (isWaiting) return;
    isWaiting = true;
    reading = reading.then(async () => {
      isWaiting = false;
      const now = await readAll(place).catch(() => known);
      const isSame = JSON.stringify(now.addresses) === JSON.stringify(known.addresses);
      known = now;
      if (!isSame) onChange(now.addresses);
    });
  };
  const changed = (_: unknown, { link }: LinkAddress) => {
    if (link !== known.services) reread();
  };
  await watchAddresses({ changed, lost: reread }, signal, place);
  // What changed between the first reading and the subscription sent no event.
  reread();
  await reading;
}
