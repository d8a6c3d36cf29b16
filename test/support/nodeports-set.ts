// A declared map of verdicts, as nftables mode has it for node ports.
import type { NftSet } from "../../src/plan/nftables/types.ts";

export const nodePortsSet: NftSet = {
  name: "service-nodeports",
  key: ["protocol", "port"],
  data: "verdict",
  interval: false,
  timeout: null,
  comment: null,
};
