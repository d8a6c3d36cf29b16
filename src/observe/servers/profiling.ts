// `/debug/pprof/` and `/debug/flags/`: profiles in the formats of Node.js, and the log's verbosity.
import type { IncomingMessage } from "node:http";
import { type Answer, notFound, pathOf, plainText } from "./http.ts";
import { bodyOf, type Page, type Pages, queryOf } from "./router.ts";

const defaultSeconds = 30;
const mostSeconds = 300;

/** What `/debug/flags/v` sets. */
export type SetVerbosity = (verbosity: number) => void;

/** A CPU profile of this process, in the format of Chrome's developer tools. */
export type TakeProfile = (seconds: number) => Promise<string>;

export function profilingPages(setVerbosity: SetVerbosity, take: TakeProfile = cpuProfile): Pages {
  return new Map<string, Page>([
    ["/debug/pprof", () => redirect("/debug/pprof/")],
    ["/debug/pprof/", pprofIndex],
    ["/debug/pprof/profile", oneAtATime((request) => profilePage(request, take))],
    ["/debug/pprof/heap", heapElsewhere],
    ["/debug/flags", flagsIndex],
    ["/debug/flags/", flagsIndex],
    ["/debug/flags/v", (request) => putVerbosity(request, setVerbosity)],
  ]);
}

function pprofIndex(request: IncomingMessage): Answer {
  if (pathOf(request) !== "/debug/pprof/") return notFound;
  return html("/debug/pprof/", [
    '<a href="profile?seconds=30">profile</a>: CPU profile (.cpuprofile; open it in Chrome\'s developer tools)',
    "heap: heap snapshot (.heapsnapshot), by turnout status --heap=FILE alone: it contains credentials",
  ]);
}

function flagsIndex(): Answer {
  return html("/debug/flags/", ["v"]);
}

function html(title: string, lines: readonly string[]): Answer {
  const body = `<html>\n<head><title>${title}</title></head>\n<body>\n${lines.map((line) => `${line}<br>\n`).join("")}</body>\n</html>\n`;
  return {
    status: 200,
    headers: { "Content-Type": "text/html; charset=utf-8", "X-Content-Type-Options": "nosniff" },
    body,
  };
}

function redirect(location: string): Answer {
  return {
    status: 302,
    headers: { "Content-Type": "text/html; charset=utf-8", Location: location },
    body: `<a href="${location}">Found</a>.\n\n`,
  };
}

async function putVerbosity(request: IncomingMessage, setVerbosity: SetVerbosity): Promise<Answer> {
  if (request.method !== "PUT") return plainText(406, "unsupported http method\n");
  const text = await bodyOf(request, 100).catch(() => "");
  if (!/^[0-9]+$/.test(text) || Number(text) >= 2 ** 31) {
    return plainText(400, `verbosity must be an integer from 0 to ${2 ** 31 - 1}\n`);
  }
  setVerbosity(Number(text));
  return plainText(200, `verbosity is now ${Number(text)}\n`);
}

function oneAtATime(page: (request: IncomingMessage) => Promise<Answer>) {
  let busy = false;
  return async (request: IncomingMessage): Promise<Answer> => {
    if (busy) return plainText(500, "a profile is being taken already\n");
    busy = true;
    try {
      return await page(request);
    } finally {
      busy = false;
    }
  };
}

async function profilePage(request: IncomingMessage, take: TakeProfile): Promise<Answer> {
  const requested = Number(queryOf(request).get("seconds") ?? defaultSeconds);
  const seconds = requested > 0 ? Math.min(requested, mostSeconds) : defaultSeconds;
  return attachment("profile.cpuprofile", await take(seconds));
}

async function cpuProfile(seconds: number): Promise<string> {
  // Loaded only here: the inspector costs memory on every node.
  const { Session } = await import("node:inspector/promises");
  const session = new Session();
  session.connect();
  try {
    await session.post("Profiler.enable");
    await session.post("Profiler.start");
    await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
    const { profile } = await session.post("Profiler.stop");
    return JSON.stringify(profile);
  } finally {
    session.disconnect();
  }
}

/** A heap snapshot contains the bearer token, and this server is not for root alone. */
function heapElsewhere(): Answer {
  return plainText(
    403,
    "heap snapshots contain credentials and are served on the status socket only: run turnout status --heap=FILE as root\n",
  );
}

function attachment(name: string, body: Answer["body"]): Answer {
  return {
    status: 200,
    headers: {
      "Content-Type": "application/octet-stream",
      "X-Content-Type-Options": "nosniff",
      "Content-Disposition": `attachment; filename="${name}"`,
    },
    body,
  };
}
