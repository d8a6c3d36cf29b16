// The status socket that --source and --node of a command name.
import { isPlayground, playgroundPid, playgroundSocket, statusSocketOf } from "../inspect/target.ts";
import { UsageError } from "../inspect/usage-error.ts";
import type { Variables } from "../model/environment.ts";

export function socketOf(
  source: string,
  node: string,
  { environment }: { readonly environment: Variables },
): string {
  if (isPlayground(source)) return playgroundSocket(playgroundPid(source), node);
  const [, socket] = /^daemon(?::(.+))?$/.exec(source) ?? [];
  if (!source.startsWith("daemon"))
    throw new UsageError(
      `--source must be daemon, daemon:SOCKET or playground, not ${JSON.stringify(source)}`,
    );
  return socket ?? statusSocketOf(environment);
}
