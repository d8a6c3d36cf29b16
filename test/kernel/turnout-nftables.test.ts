// Real packets and stories against our daemon in nftables mode.
import { describeTurnout } from "./turnout.ts";

describeTurnout("nftables");
