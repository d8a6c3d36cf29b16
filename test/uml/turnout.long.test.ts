// The other scenarios and stories: those with their own settings.
import { describeTurnout } from "./turnout.ts";

describeTurnout("later");
