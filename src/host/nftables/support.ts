// Whether this machine can do nftables, and how to remove every trace of it.
import { release } from "node:os";
import type { Family } from "../../model/address.ts";
import { nftFamilyOf, tableName } from "../../plan/nftables/types.ts";
import { HostError } from "../error.ts";
import { kernelHasIPv6 } from "../ipv6.ts";
import { readGeneration } from "../netlink/ruleset.ts";
import { openSocket, type Place } from "../netlink/socket.ts";
import { transact } from "../netlink/transaction.ts";
import { tableRefusal } from "./ownership.ts";

/** IPv4 always; IPv6 unless the kernel has it not or switched off. */
export function nftablesFamilies(): Promise<readonly Family[]> {
  return Promise.resolve(kernelHasIPv6() ? ["ipv4", "ipv6"] : ["ipv4"]);
}

/** Throws unless the kernel is new enough, allows nf_tables, and accepts tables of these families. */
export async function requireNftables(
  options: Place & { readonly families: readonly Family[] },
): Promise<void> {
  const skip = process.env.KUBE_PROXY_NFTABLES_SKIP_KERNEL_VERSION_CHECK ?? "";
  if (skip === "" && !isRecentKernel(release())) {
    throw new HostError(
      "unavailable",
      `Cannot use nftables mode: it needs Linux 5.13 or later, this is ${release()}`,
    );
  }
  try {
    await readGeneration(placeOf(options));
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new HostError(
      "unavailable",
      `Cannot use nftables mode: the kernel does not answer (${why}); are we root, with CAP_NET_ADMIN?`,
      {
        cause,
      },
    );
  }
  await mustTakeTables(placeOf(options), options.families);
}

async function mustTakeTables(place: Place, wanted: readonly Family[]): Promise<void> {
  const socket = await openSocket("netfilter", place);
  try {
    for (const family of wanted) {
      const nftFamily = nftFamilyOf(family);
      const reason = await tableRefusal(socket, nftFamily);
      if (reason === null) continue;
      const what = `this kernel takes no table of family ${nftFamily} (${reason})`;
      throw new HostError("unavailable", `Cannot use nftables mode: ${what}`);
    }
  } finally {
    await socket.close();
  }
}

/** Kernels from 5.13 on support everything that the mode needs. */
export function isRecentKernel(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major > 5 || (major === 5 && minor >= 13);
}

/** Deletes the tables of both families, and counts them; one that is not there is no error. */
export async function cleanUpNftables(options: Place): Promise<number> {
  let deleted = 0;
  const socket = await openSocket("netfilter", placeOf(options));
  try {
    for (const family of ["ip", "ip6"] as const) {
      await transact(socket, [{ kind: "deleteTable", table: { family, name: tableName } }]).then(
        () => deleted++,
        (error: unknown) => {
          const isAbsent =
            error instanceof HostError && (error.errno === "ENOENT" || error.errno === "EAFNOSUPPORT");
          if (!isAbsent) throw error;
        },
      );
    }
  } finally {
    await socket.close();
  }
  return deleted;
}

function placeOf({ netns }: Place): Place {
  return netns === undefined ? {} : { netns };
}
