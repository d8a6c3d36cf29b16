// IP addresses and networks as canonical text, read with Go's lenient rules (leading zeros are decimal).

export type Family = "ipv4" | "ipv6";

export const families: readonly Family[] = ["ipv4", "ipv6"];

/** An address in canonical text: `10.0.0.1`, `fd00::1`. Equal addresses are equal strings. */
export type Address = string;

/** A masked network in canonical text: `10.0.0.0/8`. */
export type Cidr = string;

/** Reads an address; null if it is none. An IPv4-mapped IPv6 address is IPv4. */
export function parseAddress(text: string): Address | null {
  // Most addresses are already canonical: then the text itself is the answer, and nothing is allocated.
  if (isCanonicalIPv4(text)) return text;
  const bytes = addressBytes(text);
  if (bytes === null) return null;
  const canonical = formatAddress(bytes);
  return canonical === text ? text : canonical;
}

/** Four numbers up to 255 without leading zeros, and a dot between each two. */
function isCanonicalIPv4(text: string): boolean {
  let dots = 0;
  let value = -1;
  for (let i = 0; i < text.length; i++) {
    const digit = text.charCodeAt(i) - 48;
    if (digit >= 0 && digit <= 9) {
      if (value === 0) return false;
      value = value < 0 ? digit : value * 10 + digit;
      if (value > 255) return false;
    } else {
      if (digit !== dot || value < 0) return false;
      dots++;
      value = -1;
    }
  }
  return dots === 3 && value >= 0;
}

/** Code of the dot, counted from the code of zero. */
const dot = -2;

/** Reads a network and masks it: `10.1.2.3/8` is `10.0.0.0/8`. */
export function parseCidr(text: string): Cidr | null {
  const slash = text.indexOf("/");
  if (slash < 0) return null;
  const digits = text.slice(slash + 1);
  if (!/^[0-9]+$/.test(digits)) return null;
  const length = Number(digits);
  const written = text.slice(0, slash);
  const bytes = addressBytes(written);
  if (bytes === null) return null;
  // An IPv4-mapped network counts its prefix in 128 bits, as Go does.
  if (bytes.length === 4 && written.includes(":")) {
    return length < 96 || length > 128 ? null : `${formatAddress(masked(bytes, length - 96))}/${length - 96}`;
  }
  if (length > bytes.length * 8) return null;
  return `${formatAddress(masked(bytes, length))}/${length}`;
}

/** Family of a canonical address or network. */
export function familyOf(addressOrCidr: string): Family {
  return addressOrCidr.includes(":") ? "ipv6" : "ipv4";
}

/** Prefix length of a canonical network. */
export function prefixLength(cidr: Cidr): number {
  return Number(cidr.slice(cidr.indexOf("/") + 1));
}

/** Network address of a canonical network. */
export function networkAddress(cidr: Cidr): Address {
  return cidr.slice(0, cidr.indexOf("/"));
}

/** Whether a canonical network contains a canonical address; never across families. */
export function contains(cidr: Cidr, address: Address): boolean {
  const network = addressBytes(networkAddress(cidr))!;
  const bytes = addressBytes(address);
  if (bytes === null || bytes.length !== network.length) return false;
  const length = prefixLength(cidr);
  const whole = length >> 3;
  for (let i = 0; i < whole; i++) if (bytes[i] !== network[i]) return false;
  const rest = length & 7;
  return rest === 0 || (bytes[whole]! ^ network[whole]!) >> (8 - rest) === 0;
}

/** Whether network `outer` contains all of network `inner`. */
export function containsCidr(outer: Cidr, inner: Cidr): boolean {
  return prefixLength(outer) <= prefixLength(inner) && contains(outer, networkAddress(inner));
}

export function isLoopback(address: Address): boolean {
  return familyOf(address) === "ipv4" ? address.startsWith("127.") : address === "::1";
}

/** The network of one address: `10.0.0.1/32`. */
export function hostCidr(address: Address): Cidr {
  return `${address}/${familyOf(address) === "ipv4" ? 32 : 128}`;
}

/** `10.0.0.1:80` or `[fd00::1]:80`. */
export function joinHostPort(address: Address, port: number): string {
  return familyOf(address) === "ipv6" ? `[${address}]:${port}` : `${address}:${port}`;
}

/** The 4 or 16 bytes of an address; null if the text is none. IPv4-mapped IPv6 returns 4 bytes. */
export function addressBytes(text: string): Uint8Array | null {
  if (!text.includes(":")) return ipv4Bytes(text);
  const bytes = ipv6Bytes(text);
  return bytes !== null && isMapped(bytes) ? bytes.slice(12) : bytes;
}

/** The same, but 16 bytes of every IPv6 text: the last address of a network can look IPv4-mapped, as that of `::/80`. */
export function bytesAsWritten(text: string): Uint8Array | null {
  return text.includes(":") ? ipv6Bytes(text) : ipv4Bytes(text);
}

export function formatAddress(bytes: Uint8Array): Address {
  if (bytes.length === 4) return `${bytes[0]}.${bytes[1]}.${bytes[2]}.${bytes[3]}`;
  const groups = Array.from({ length: 8 }, (_, i) => (bytes[2 * i]! << 8) | bytes[2 * i + 1]!);
  const zeros = longestZeroRun(groups);
  const hex = groups.map((group) => group.toString(16));
  if (zeros.length < 2) return hex.join(":");
  return `${hex.slice(0, zeros.start).join(":")}::${hex.slice(zeros.start + zeros.length).join(":")}`;
}

function ipv4Bytes(text: string): Uint8Array | null {
  const number = ipv4Number(text);
  if (number < 0) return null;
  return Uint8Array.of(number >>> 24, (number >>> 16) & 255, (number >>> 8) & 255, number & 255);
}

/** An IPv4 address as a number of 32 bits, without allocating; -1 for any other text. */
export function ipv4Number(text: string): number {
  let number = 0;
  let parts = 0;
  let value = -1;
  for (let i = 0; i <= text.length; i++) {
    const code = i === text.length ? 46 : text.charCodeAt(i);
    if (code === 46) {
      if (value < 0 || parts > 3) return -1;
      number = number * 256 + value;
      parts++;
      value = -1;
    } else if (code >= 48 && code <= 57) {
      value = (value < 0 ? 0 : value * 10) + code - 48;
      if (value > 255) return -1;
    } else return -1;
  }
  return parts === 4 ? number : -1;
}

function ipv6Bytes(text: string): Uint8Array | null {
  const halves = text.split("::");
  if (halves.length > 2) return null;
  const head = groupsOf(halves[0]!, halves.length === 1);
  const tail = halves.length === 2 ? groupsOf(halves[1]!, true) : [];
  if (head === null || tail === null) return null;
  const missing = 8 - head.length - tail.length;
  if (halves.length === 1 ? missing !== 0 : missing < 1) return null;
  const bytes = new Uint8Array(16);
  for (const [i, group] of [...head, ...Array<number>(missing).fill(0), ...tail].entries()) {
    bytes[2 * i] = group >> 8;
    bytes[2 * i + 1] = group & 255;
  }
  return bytes;
}

function groupsOf(text: string, mayEndInIPv4: boolean): number[] | null {
  if (text === "") return [];
  const parts = text.split(":");
  const groups: number[] = [];
  for (const [i, part] of parts.entries()) {
    if (mayEndInIPv4 && i === parts.length - 1 && part.includes(".")) {
      const bytes = ipv4Bytes(part);
      if (bytes === null) return null;
      groups.push((bytes[0]! << 8) | bytes[1]!, (bytes[2]! << 8) | bytes[3]!);
    } else {
      if (!/^[0-9a-fA-F]+$/.test(part)) return null;
      const value = Number.parseInt(part, 16);
      if (value > 0xffff) return null;
      groups.push(value);
    }
  }
  return groups.length <= 8 ? groups : null;
}

function isMapped(bytes: Uint8Array): boolean {
  for (let i = 0; i < 10; i++) if (bytes[i] !== 0) return false;
  return bytes[10] === 255 && bytes[11] === 255;
}

function masked(bytes: Uint8Array, length: number): Uint8Array {
  return bytes.map((byte, i) => {
    const bits = Math.min(8, Math.max(0, length - 8 * i));
    return byte & (0xff00 >> bits);
  });
}

function longestZeroRun(groups: readonly number[]): { start: number; length: number } {
  let best = { start: 0, length: 0 };
  let start = 0;
  for (let i = 0; i <= groups.length; i++) {
    if (i < groups.length && groups[i] === 0) continue;
    if (i - start > best.length) best = { start, length: i - start };
    start = i + 1;
  }
  return best;
}
