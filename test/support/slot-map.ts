// A map that holds Spreads, as the nftables mode has them.
import type { NftSet } from "../../src/plan/nftables/types.ts";

export const slotMap: NftSet = {
  name: "endpoints",
  key: ["address", "protocol", "port", "slot"],
  data: ["address", "port"],
  interval: false,
  timeout: null,
  comment: null,
};
