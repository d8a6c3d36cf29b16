// Keeps the settings in step with the addresses on this machine's interfaces.
import { followLocalAddresses } from "../host/local-addresses.ts";
import type { Part } from "./part.ts";
import type { StartedNode } from "./start/start.ts";

export function watchLocalAddresses(
  { settings, localAddresses }: Pick<StartedNode, "settings" | "localAddresses">,
  wake: () => void,
): Part {
  return {
    async run(signal) {
      await followLocalAddresses(
        {},
        localAddresses,
        (addresses) => {
          settings.setLocalAddresses(addresses);
          wake();
        },
        signal,
      );
      return null;
    },
  };
}
