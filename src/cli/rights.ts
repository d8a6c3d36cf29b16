// Checks, before anything else is done, whether this process may read and change the kernel's network rules.
import { readFileSync } from "node:fs";

/** Bit of CAP_NET_ADMIN in the sets of /proc/self/status. */
const netAdmin = 1n << 12n;

/** What is missing and what to do; null when nothing is, or when it cannot be determined. */
export function missingRights(
  status: () => string = () => readFileSync("/proc/self/status", "utf8"),
  uid: number | undefined = process.getuid?.(),
): string | null {
  const effective = capabilitiesIn(status);
  if (effective === null || (effective & netAdmin) !== 0n) return null;
  return uid === 0
    ? "it requires the capability NET_ADMIN, which this process does not have; add it to the container"
    : "it requires root; run it with sudo";
}

function capabilitiesIn(status: () => string): bigint | null {
  try {
    const [, hex] = /^CapEff:\s*([0-9a-f]+)$/m.exec(status()) ?? [];
    return hex === undefined ? null : BigInt(`0x${hex}`);
  } catch {
    return null;
  }
}
