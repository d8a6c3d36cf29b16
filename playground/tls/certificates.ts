// Creates a certificate authority and a server certificate in memory: Node.js has no generator, and openssl may not be installed.
import {
  createHash,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
  X509Certificate,
} from "node:crypto";
import { isIP } from "node:net";
import {
  bits,
  explicit,
  implicit,
  integer,
  objectId,
  octets,
  sequence,
  setOf,
  text,
  time,
  yes,
} from "./der.ts";

/** PEM text. The CA key is discarded after signing one certificate. */
export type Identity = { readonly ca: string; readonly cert: string; readonly key: string };

const day = 24 * 3_600_000;

/** `hosts`: the addresses and names of the server. */
export function makeIdentity(hosts: readonly string[], now: number): Identity {
  const authority = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const server = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const issuer = name("turnout-playground-ca");
  const issue = (subject: Buffer, key: KeyObject, extensions: readonly Buffer[]) =>
    certificate({ subject, issuer, key, signer: authority.privateKey, extensions, now });
  const ca = issue(issuer, authority.publicKey, [
    extension("2.5.29.19", sequence(yes), "critical"),
    // keyCertSign alone: bit 5.
    extension("2.5.29.15", bits(Buffer.from([0x04]), 2), "critical"),
    extension("2.5.29.14", octets(keyId(authority.publicKey))),
  ]);
  const cert = issue(name("turnout-playground"), server.publicKey, [
    extension("2.5.29.19", sequence(), "critical"),
    // digitalSignature alone: bit 0.
    extension("2.5.29.15", bits(Buffer.from([0x80]), 7), "critical"),
    extension("2.5.29.37", sequence(objectId("1.3.6.1.5.5.7.3.1"))),
    extension("2.5.29.35", sequence(implicit(0, keyId(authority.publicKey)))),
    extension("2.5.29.17", sequence(...hosts.map(alternativeName))),
  ]);
  const key = server.privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  return { ca, cert, key };
}

type Certified = {
  readonly subject: Buffer;
  readonly issuer: Buffer;
  readonly key: KeyObject;
  readonly signer: KeyObject;
  readonly extensions: readonly Buffer[];
  readonly now: number;
};

function certificate({ subject, issuer, key, signer, extensions, now }: Certified): string {
  const ecdsaWithSha256 = sequence(objectId("1.2.840.10045.4.3.2"));
  const version3 = explicit(0, integer(Buffer.from([2])));
  const body = sequence(
    version3,
    integer(randomBytes(16)),
    ecdsaWithSha256,
    issuer,
    // Valid despite small clock changes and for long runs.
    sequence(time(new Date(now - day)), time(new Date(now + 365 * day))),
    subject,
    key.export({ type: "spki", format: "der" }),
    explicit(3, sequence(...extensions)),
  );
  const whole = sequence(body, ecdsaWithSha256, bits(sign("sha256", body, signer)));
  return new X509Certificate(whole).toString();
}

function name(commonName: string): Buffer {
  return sequence(setOf(sequence(objectId("2.5.4.3"), text(commonName))));
}

function extension(id: string, value: Buffer, critical?: "critical"): Buffer {
  return sequence(objectId(id), ...(critical === undefined ? [] : [yes]), octets(value));
}

function keyId(key: KeyObject): Buffer {
  return createHash("sha256")
    .update(key.export({ type: "spki", format: "der" }))
    .digest()
    .subarray(0, 20);
}

function alternativeName(host: string): Buffer {
  return isIP(host) === 0 ? implicit(2, Buffer.from(host)) : implicit(7, addressBytes(host));
}

/** Supports IPv6 addresses with at most one `::`. */
function addressBytes(address: string): Buffer {
  if (isIP(address) === 4) return Buffer.from(address.split(".").map(Number));
  const [head = "", tail = ""] = address.split("::");
  const groups = (part: string) => (part === "" ? [] : part.split(":"));
  const zeros = Array<string>(8 - groups(head).length - groups(tail).length).fill("0");
  return Buffer.from(
    [...groups(head), ...zeros, ...groups(tail)].map((group) => group.padStart(4, "0")).join(""),
    "hex",
  );
}
