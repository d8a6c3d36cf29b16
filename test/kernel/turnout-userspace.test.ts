// Real packets and stories against our daemon in userspace mode.
import { describeTurnout } from "./turnout.ts";

describeTurnout("userspace");
