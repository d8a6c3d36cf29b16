// Sets of networks: what is left of a list without nested networks, and whether an address is in one of them.
import { type Address, addressBytes, type Cidr, networkAddress, prefixLength } from "./address.ts";

/** A network and its first address as bytes; `place` orders networks by first address, outer before inner. */
type Placed = { readonly network: Cidr; readonly bits: number; readonly place: string };

/** How two networks are compared: tests count the calls. */
export type Comparisons = {
  readonly order: (a: Placed, b: Placed) => number;
  readonly isInside: (outer: Placed, inner: Placed) => boolean;
};

/**
 * The networks without duplicates and without those inside another one, in the order of their addresses. Two networks
 * are nested or disjoint, so in this order a nested one follows the network that contains it: one pass is enough.
 */
export function withoutNested(
  networks: readonly Cidr[],
  { order, isInside }: Comparisons = comparisons,
): readonly Cidr[] {
  return placesOf(networks, order, isInside).map(({ network }) => network);
}

/** Whether one of the networks contains an address. The list is sorted once; each call takes log n steps. */
export function anyContains(networks: readonly Cidr[], address: Address): boolean {
  let places = sorted.get(networks);
  if (places === undefined) {
    places = placesOf(networks, comparisons.order, comparisons.isInside);
    sorted.set(networks, places);
  }
  const wanted: Placed = {
    network: "",
    bits: fullLength(address),
    place: placeOf(address, fullLength(address)),
  };
  let [low, high] = [0, places.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (order(places[middle]!, wanted) <= 0) low = middle + 1;
    else high = middle;
  }
  return low > 0 && isInside(places[low - 1]!, wanted);
}

const sorted = new WeakMap<readonly Cidr[], readonly Placed[]>();

function placesOf(
  networks: readonly Cidr[],
  order: Comparisons["order"],
  isInside: Comparisons["isInside"],
): readonly Placed[] {
  const places = networks.map(placed).sort(order);
  let kept = 0;
  for (const place of places) {
    if (kept === 0 || !isInside(places[kept - 1]!, place)) places[kept++] = place;
  }
  places.length = kept;
  return places;
}

function placed(network: Cidr): Placed {
  const bits = prefixLength(network);
  return { network, bits, place: placeOf(networkAddress(network), bits) };
}

/** The bytes of an address and a prefix length, one character each: they compare as text. */
function placeOf(address: Address, bits: number): string {
  return String.fromCharCode(...addressBytes(address)!, bits);
}

function fullLength(address: Address): number {
  return address.includes(":") ? 128 : 32;
}

function order(a: Placed, b: Placed): number {
  return a.place < b.place ? -1 : a.place > b.place ? 1 : 0;
}

function isInside(outer: Placed, inner: Placed): boolean {
  if (outer.place.length !== inner.place.length || outer.bits > inner.bits) return false;
  const whole = outer.bits >> 3;
  for (let i = 0; i < whole; i++) if (outer.place.charCodeAt(i) !== inner.place.charCodeAt(i)) return false;
  const rest = outer.bits & 7;
  return rest === 0 || (outer.place.charCodeAt(whole) ^ inner.place.charCodeAt(whole)) >> (8 - rest) === 0;
}

const comparisons: Comparisons = { order, isInside };
