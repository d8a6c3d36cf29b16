// Which processes may work with the kernel's network rules.
import { expect, it } from "vitest";
import { missingRights } from "./rights.ts";

const status = (effective: string) => () => `Name:\tnode\nCapPrm:\t0\nCapEff:\t${effective}\n`;

it("user/5: root without NET_ADMIN, and users without it, are refused with what to do", () => {
  expect(missingRights(status("000001ffffffffff"), 0)).toBeNull();
  expect(missingRights(status("0000000000001000"), 1000)).toBeNull();
  expect(missingRights(status("0000000000000000"), 1000)).toBe("it requires root; run it with sudo");
  expect(missingRights(status("00000000a80425fb"), 0)).toMatch(/^it requires the capability NET_ADMIN/);
});

it("nothing is refused when the rights cannot be determined", () => {
  const unreadable = () => {
    throw new Error("ENOENT");
  };
  expect([missingRights(unreadable, 1000), missingRights(() => "", 1000)]).toEqual([null, null]);
});
