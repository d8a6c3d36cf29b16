// Tests of the certificates: Node.js and openssl accept them only for their own hosts.
import { execFileSync } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, request } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { makeIdentity } from "./certificates.ts";
import { integer, objectId, octets, time } from "./der.ts";

const now = Date.UTC(2026, 5, 1);

describe("security/1: certificates", () => {
  const identity = makeIdentity(["127.0.0.1", "::1", "localhost"], Date.now());

  it("are signed by their own CA and match only the hosts of the server", () => {
    const [ca, cert] = [new X509Certificate(identity.ca), new X509Certificate(identity.cert)];
    expect([ca.ca, cert.ca]).toEqual([true, false]);
    expect([ca.verify(ca.publicKey), cert.verify(ca.publicKey), cert.checkIssued(ca)]).toEqual([
      true,
      true,
      true,
    ]);
    expect(cert.checkIP("127.0.0.1")).toBe("127.0.0.1");
    expect(cert.checkIP("::1")).toBe("::1");
    expect(cert.checkHost("localhost")).toBe("localhost");
    expect([cert.checkIP("127.0.0.2"), cert.checkHost("evil.example")]).toEqual([undefined, undefined]);
  });

  it("differ in every run", () => {
    const other = makeIdentity(["127.0.0.1"], now);
    expect(other.ca).not.toBe(identity.ca);
    expect(new X509Certificate(other.cert).verify(new X509Certificate(identity.ca).publicKey)).toBe(false);
    expect(new X509Certificate(other.cert).validTo).toBe("Jun  1 00:00:00 2027 GMT");
  });

  it("let only clients connect that trust the CA", async () => {
    const server = createServer({ key: identity.key, cert: identity.cert }, (_, response) =>
      response.end("hello"),
    );
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const sendRequest = (ca?: string) =>
      new Promise((resolve) =>
        request(
          { host: "127.0.0.1", port, agent: false, ...(ca === undefined ? {} : { ca }) },
          (response) => {
            response.resume();
            resolve(response.statusCode);
          },
        )
          .on("error", (error: NodeJS.ErrnoException) => resolve(error.code))
          .end(),
      );
    expect(await sendRequest(identity.ca)).toBe(200);
    expect(await sendRequest()).toBe("UNABLE_TO_VERIFY_LEAF_SIGNATURE");
    expect(await sendRequest(makeIdentity(["127.0.0.1"], now).ca)).toBe("UNABLE_TO_VERIFY_LEAF_SIGNATURE");
    server.close();
  });

  it.skipIf(!existsSync("/usr/bin/openssl"))("are what openssl calls strictly correct", () => {
    const folder = mkdtempSync(join(tmpdir(), "turnout-tls-"));
    try {
      for (const [name, pem] of Object.entries(identity)) writeFileSync(join(folder, name), pem);
      const line = "verify -x509_strict -purpose sslserver -verify_ip ::1 -CAfile ca cert";
      expect(execFileSync("openssl", line.split(" "), { cwd: folder, encoding: "utf8" })).toBe("cert: OK\n");
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe("DER", () => {
  const hex = (bytes: Buffer) => bytes.toString("hex");

  it("writes numbers, identifiers, lengths and times as in X.690", () => {
    expect(hex(integer(Buffer.from([0, 0, 0x7f])))).toBe("02017f");
    expect(hex(integer(Buffer.from([0x80])))).toBe("02020080");
    expect(hex(integer(Buffer.from([0, 0])))).toBe("020100");
    expect(hex(objectId("1.2.840.10045.4.3.2"))).toBe("06082a8648ce3d040302");
    expect(hex(octets(Buffer.alloc(128)).subarray(0, 3))).toBe("048180");
    expect(hex(octets(Buffer.alloc(65_536)).subarray(0, 5))).toBe("0483010000");
    expect(time(new Date(now)).toString("latin1")).toBe("\u0017\r260601000000Z");
    expect(time(new Date(Date.UTC(2050, 0))).toString("latin1")).toBe("\u0018\u000f20500101000000Z");
  });
});
