// The page of the playground: the views of both nodes, answered by their daemons, and the commands of the prompt as actions.
import { playgroundNodes } from "../src/inspect/playgrounds.ts";
import { type PageViews, viewAnswer } from "../src/observe/status/page-views.ts";
import { pageFiles } from "../src/page/embedded.ts";
import type { PageFiles } from "../src/page/files.ts";
import { remoteViews } from "../src/page/remote-views.ts";
import { type OpenPage, openPage, type Page } from "../src/page/server.ts";
import { runLine } from "./commands.ts";
import { CommandError, type Playground } from "./playground.ts";

/** On the requested port, or on any free port. */
export async function openPlaygroundPage(
  playground: Playground,
  port: number,
  files = pageFiles(),
): Promise<OpenPage> {
  const page = pageOf(playground, files);
  try {
    return await openPage(page, { host: "127.0.0.1", port });
  } catch {
    return openPage(page, { host: "127.0.0.1", port: 0 });
  }
}

function pageOf(playground: Playground, files: PageFiles): Page {
  const remote = new Map<string, PageViews>(
    playgroundNodes.map((node) => [node, remoteViews(playground.statusSocketOf(node))]),
  );
  const nodes = new Map([...remote].map(([node, views]) => [node, withNames(playground, views, remote)]));
  return {
    files,
    nodes,
    flags: "--source=playground",
    act: (line) => runLine(playground, line),
  };
}

/** Names of pods can be used as senders: a packet is explained by the node of its pod. */
function withNames(
  playground: Playground,
  views: PageViews,
  nodes: ReadonlyMap<string, PageViews>,
): PageViews {
  return {
    events: views.events,
    async answer(view, query) {
      if (view === "names") return viewAnswer(200, Object.fromEntries(playground.podNames()));
      if (view !== "explain" && !(view === "whatif" && query.has("from"))) return views.answer(view, query);
      try {
        const { from, node } = playground.senderOf(query.get("from") ?? "", query.get("to") ?? "");
        const asked = new URLSearchParams([...query]);
        asked.set("from", from);
        return await (node === null ? views : nodes.get(node)!).answer(view, asked);
      } catch (error) {
        if (!(error instanceof CommandError)) throw error;
        return viewAnswer(400, { error: error.message });
      }
    },
  };
}
