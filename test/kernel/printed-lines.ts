// The command lines that README and the docs print, and those of them that no test can run as they are.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "..", "..");

export type PrintedLine = { readonly file: string; readonly line: string };

/** In README everywhere, on the other pages in the first section, and the examples of `turnout COMMAND --help`. */
export function printedLines(): readonly PrintedLine[] {
  const pages = ["docs", "docs/modes"].flatMap((folder) =>
    readdirSync(join(root, folder))
      .filter((name) => name.endsWith(".md"))
      .map((name) => join(folder, name)),
  );
  return [
    ...shellLines("README.md", read("README.md")),
    ...pages.flatMap((file) => shellLines(file, firstSection(read(file)))),
    ...examples("docs/commands.md"),
  ];
}

/** Lines that cannot be run as they are printed, by how they begin, with the reason. */
export const cannotRun: Readonly<Record<string, string>> = {
  "npm start": "test/kernel/playground-end.test.ts runs it below npm, on a port of its own",
  "npm test": "it would run itself",
  "bin/kube-proxy --config=":
    "needs a cluster; test/kernel/turnout-nftables.test.ts runs it with such a file",
  "helm install": "needs a cluster; test/deploy.test.ts renders the chart",
  "kubectl -n kube-system set image": "needs a cluster with kube-proxy",
  "kubectl -n kube-system get pods": "needs a cluster",
  "kubectl -n kube-system exec": "needs a cluster",
  "kubectl turnout": "needs a cluster; test/kernel/kubectl-plugin.test.ts runs the lines of docs/kubectl.md",
  "install bin/kubectl": "would install programs; test/kernel/kubectl-plugin.test.ts runs them from bin",
  "turnout doctor -o json": "needs a daemon; test/kernel/containers.test.ts runs it",
  "turnout explain web-1 svc/stock -n shop --source=playground":
    "test/kernel/kubectl-plugin.test.ts asks the same",
  "turnout flows :30080 --follow":
    "runs until it is interrupted; test/kernel/follow-flows.test.ts follows flows",
  "turnout flows pod/shop/web-1 --source=playground":
    "needs a playground; test/kernel/flow-classes.test.ts selects flows",
  "turnout page": "serves until it is interrupted; test/kernel/page.test.ts runs it",
  "bin/turnout page": "serves until it is interrupted; test/kernel/page.test.ts runs it",
  "turnout playground": "test/kernel/playground-end.test.ts runs it, on a port of its own",
  "turnout status": "needs a daemon or a playground; test/kernel/inspect.test.ts runs it",
  "turnout top":
    "needs a daemon, and runs until it is interrupted; test/kernel/traffic-counts.test.ts runs it",
  "turnout diff --live --source=playground": "test/kernel/tutorial.test.ts runs it",
  "turnout explain outside nodeport:30080 --at=": "needs a daemon; test/history-commands.test.ts runs it",
  "turnout diff --at=": "needs a daemon; test/history-commands.test.ts runs it",
  "turnout history": "needs a daemon; test/kernel/tutorial.test.ts and test/history-commands.test.ts run it",
  "turnout blame": "needs a daemon; test/kernel/tutorial.test.ts and test/history-commands.test.ts run it",
  "turnout whatif --without=zone/b --without=": "needs a playground; test/kernel/tutorial.test.ts runs one",
  "turnout doctor migrate --config=": "needs a cluster; test/kernel/doctor.test.ts runs it with a file",
  "turnout completion": "writes to the home directory of the reader; test/commands.test.ts runs it",
  "source <(": "changes the shell of the reader; test/commands.test.ts runs it",
};

/** Why a line is not run; null when it is. */
export function reasonNotToRun(line: string): string | null {
  return Object.entries(cannotRun).find(([start]) => line.startsWith(start))?.[1] ?? null;
}

function read(file: string): string {
  return readFileSync(join(root, file), "utf8");
}

/** What is before the second heading of a section. */
function firstSection(page: string): string {
  return page.split(/^## /m).slice(0, 2).join("## ");
}

function shellLines(file: string, text: string): readonly PrintedLine[] {
  return [...text.matchAll(/^```sh\n([\s\S]*?)^```/gm)]
    .flatMap(([, block = ""]) => block.split("\n"))
    .map((line) => withoutComment(line))
    .filter((line) => line !== "")
    .map((line) => ({ file, line }));
}

/** Where the line has placeholders, its comment has an example. */
function withoutComment(line: string): string {
  const [command = "", comment = ""] = line.split(/\s+# /);
  return /\b[A-Z]{2,}\b/.test(command) ? comment.replace(/^e\.g\. /, "") : command.trim();
}

/** The indented lines below `Examples:`. */
function examples(file: string): readonly PrintedLine[] {
  return [...read(file).matchAll(/^Examples:\n((?: {2}.*\n)+)/gm)]
    .flatMap(([, block = ""]) => block.split("\n"))
    .map((line) => line.trim())
    .filter((line) => line !== "")
    .map((line) => ({ file, line }));
}
