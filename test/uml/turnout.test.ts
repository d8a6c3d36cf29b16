// Real packets and stories against our own daemon in ipvs mode, in a kernel that has IPVS.
import { describeTurnout } from "./turnout.ts";

describeTurnout("soon");
