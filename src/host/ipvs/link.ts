// The link that carries the addresses of Services, and those addresses, over rtnetlink.
import { type Address, type Family, familyOf, isLoopback } from "../../model/address.ts";
import { type IpvsState, linkName, type Operation } from "../../plan/ipvs/types.ts";
import { HostError } from "../error.ts";
import {
  addLink,
  deleteLink,
  findLink,
  type LinkAddress,
  readAddresses,
  writeAddress,
} from "../netlink/route.ts";
import { type Applied, type Numbered, nothingApplied, sumApplied } from "./applied.ts";
import { failed, type Kernel, sendAll } from "./kernel.ts";

export type LinkOperation = Extract<Operation, { readonly kind: `${string} link` | `${string} address` }>;
type OnLink = Extract<LinkOperation, { readonly kind: `${string} link` }>;
type OnAddress = Extract<LinkOperation, { readonly kind: `${string} address` }>;

const kind = "dummy";

export async function readLinkState(
  { route, place }: Kernel,
  family: Family,
  signal?: AbortSignal,
): Promise<Pick<IpvsState, "link" | "addresses">> {
  const link = await findLink(route, linkName, signal);
  if (link === null) return { link: "absent", addresses: new Set() };
  const all = await readAddresses(place, signal);
  const own = all.filter((found) => found.link === link.index && found.family === family && isOurs(found));
  return {
    link: link.kind === kind ? "dummy" : "other",
    addresses: new Set(own.map(({ address }) => address)),
  };
}

/** The kernel gives a link its link-local address by itself. */
function isOurs({ address, scope }: LinkAddress): boolean {
  return scope !== "link" && !isLoopback(address);
}

export async function applyToLink(
  kernel: Kernel,
  operations: readonly Numbered<LinkOperation>[],
): Promise<Applied> {
  let total = nothingApplied;
  for (const part of partsOf(operations)) {
    const change = part.of === "link" ? changeLink(kernel, part.one) : changeAddresses(kernel, part.many);
    total = sumApplied(total, await change);
  }
  return total;
}

type Part =
  | { readonly of: "link"; readonly one: Numbered<OnLink> }
  | { readonly of: "addresses"; readonly many: Numbered<OnAddress>[] };

function partsOf(operations: readonly Numbered<LinkOperation>[]): Part[] {
  const parts: Part[] = [];
  for (const { at, operation } of operations) {
    if (operation.kind === "add link" || operation.kind === "delete link") {
      parts.push({ of: "link", one: { at, operation } });
      continue;
    }
    const last = parts.at(-1);
    if (last?.of === "addresses") last.many.push({ at, operation });
    else parts.push({ of: "addresses", many: [{ at, operation }] });
  }
  return parts;
}

async function changeLink({ route }: Kernel, numbered: Numbered<OnLink>): Promise<Applied> {
  const queried = { ...nothingApplied, messages: 1 };
  const link = await findLink(route, linkName);
  const isThere = link !== null;
  if (isThere === (numbered.operation.kind === "add link")) return queried;
  if (isThere && link.kind !== kind) {
    const meaning = `it is a ${link.kind || "physical"} link, not a ${kind} one`;
    return { ...queried, failures: [failed(numbered, "EOPNOTSUPP", meaning)] };
  }
  try {
    await (isThere ? deleteLink(route, linkName) : addLink(route, linkName, kind, undefined, "down"));
    return sumApplied(queried, queried);
  } catch (error) {
    if (!(error instanceof HostError) || error.kind !== "refused") throw error;
    // The host of the other family was quicker.
    if (error.errno === (isThere ? "ENODEV" : "EEXIST")) return sumApplied(queried, queried);
    return { ...sumApplied(queried, queried), failures: [failed(numbered, error.errno, error.text)] };
  }
}

async function changeAddresses(
  { route }: Kernel,
  operations: readonly Numbered<OnAddress>[],
): Promise<Applied> {
  const link = await findLink(route, linkName);
  if (link === null) return withoutLink(operations);
  return sendAll(
    route,
    operations,
    (out, sequence, { kind: verb, address }) => {
      const request = { ...wholeAddress(address), link: link.index };
      writeAddress(out, sequence, verb === "add address" ? "add" : "delete", request);
    },
    ({ operation }, errno) => (tolerated[operation.kind].includes(errno) ? null : ""),
  );
}

const tolerated: Readonly<Record<OnAddress["kind"], readonly string[]>> = {
  "add address": ["EEXIST"],
  // Which of them depends on the family and the kernel.
  "delete address": ["EADDRNOTAVAIL", "ENXIO", "ENODEV"],
};

function withoutLink(operations: readonly Numbered<OnAddress>[]): Applied {
  const added = operations.filter(({ operation }) => operation.kind === "add address");
  const failures = added.map((numbered) => failed(numbered, "ENODEV", `there is no link ${linkName}`));
  return { ...nothingApplied, messages: 1, failures };
}

function wholeAddress(address: Address): Pick<LinkAddress, "family" | "address" | "prefixLength"> {
  const family = familyOf(address);
  return { family, address, prefixLength: family === "ipv4" ? 32 : 128 };
}
