// What the machine must be able to do for nftables mode.
import { describe, expect, it } from "vitest";
import { isRecentKernel } from "./support.ts";

describe("nftables mode", () => {
  it.each([
    ["5.12.19", false],
    ["5.13.0", true],
    ["4.19.0-20-amd64", false],
    ["5.4.0", false],
    ["6.1.0-18-cloud-amd64", true],
    ["10.0", true],
  ])("11/2 on Linux %s can work: %s", (version, can) => {
    expect(isRecentKernel(version)).toBe(can);
  });
});
