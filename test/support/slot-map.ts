// A slot map like those of the nftables mode.
import type { NftSet } from "../../src/plan/nftables/types.ts";

export const slotMap: NftSet = {
  name: "endpoints",
  key: ["address", "protocol", "port", "slot"],
  data: ["address", "port"],
  interval: false,
  timeout: null,
  comment: null,
};
