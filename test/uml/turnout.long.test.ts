// The other scenarios and stories: those with settings of their own.
import { describeTurnout } from "./turnout.ts";

describeTurnout("later");
