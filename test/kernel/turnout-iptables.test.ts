// Real packets and stories against our daemon in iptables mode.
import { describeTurnout } from "./turnout.ts";

describeTurnout("iptables");
