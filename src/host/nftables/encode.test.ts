// Patches as kernel operations, where the kernel itself would not report an error.
import { describe, expect, it } from "vitest";
import { endpoint, routed, servicePort } from "../../../test/support/routed.ts";
import { compile } from "../../modes/nftables/compile.ts";
import { diff } from "../../plan/nftables/diff.ts";
import { unfold } from "../../plan/nftables/plan.ts";
import { encodePatch } from "./encode.ts";

describe("a Patch as kernel operations", () => {
  it("gives every anonymous map a number of its own", () => {
    const endpoints = Array.from({ length: 100 }, (_, i) =>
      endpoint(`10.180.${i < 36 ? 0 : 1}.${i + 1}:8080`),
    );
    const sticky = servicePort("shop/sticky", {
      affinity: { seconds: 60 },
      nodePort: 30001,
      externalPolicy: "local",
      endpoints,
    });
    const patch = diff(null, unfold(compile(null, routed([sticky]))));
    const ids = encodePatch(patch, { family: "ip", tableFlags: 0 }).flatMap(({ operation }) =>
      operation.kind === "addSet" && operation.set.id !== undefined ? [operation.set.id] : [],
    );
    expect(ids.length).toBe(2);
    expect(new Set(ids).size).toBe(2);
  });
});
