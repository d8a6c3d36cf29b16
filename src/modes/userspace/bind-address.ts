// The address that relays listen on.
import { type Address, type Family, familyOf } from "../../model/address.ts";

/** null: every address. */
export function bindAddressOf(family: Family, bindAddress: Address): Address | null {
  const isZero = bindAddress === "0.0.0.0" || bindAddress === "::";
  return isZero || familyOf(bindAddress) !== family ? null : bindAddress;
}
