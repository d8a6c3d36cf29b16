// The status socket that --source and --node of a command name.
import type { Variables } from "../model/environment.ts";
import { isPlayground, playgroundPid, playgroundSocket, statusSocketOf } from "./target.ts";
import { UsageError } from "./usage-error.ts";

type World = { readonly environment: Variables };

/** null: the source is no daemon, but files or an API server. */
export function daemonSocket(source: string, node: string, { environment }: World): string | null {
  if (isPlayground(source)) return playgroundSocket(playgroundPid(source), node);
  if (!/^daemon(:|$)/.test(source)) return null;
  return source.slice("daemon:".length) || statusSocketOf(environment);
}

/** For commands that only a daemon can answer; `why` continues the message about another source. */
export function requiredSocket(source: string, node: string, world: World, why = ""): string {
  const socket = daemonSocket(source, node, world);
  if (socket !== null) return socket;
  throw new UsageError(
    `--source must be daemon, daemon:SOCKET or playground, not ${JSON.stringify(source)}${why}`,
  );
}
