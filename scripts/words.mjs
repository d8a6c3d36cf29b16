// Finds words that the style of this project replaces by plain ones, and identifiers that were renamed.
// usage: words.mjs [root]
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

/** Found in any case, also as a part of an identifier: `toldTwice`. */
const words = {
  tell: "report, return, log or print",
  telling: "reporting, returning, logging or printing",
  told: "reported, returned, logged or printed",
  tells: "reports, returns, logs or prints",
  hear: "receive or watch",
  hearing: "receiving or watching",
  hears: "receives or watches",
  heard: "received or notified",
  overheard: "received",
  anew: "again or from scratch",
  "once more": "again",
  thereafter: "after that",
  whoever: "the client, the user or another process",
  whomever: "the client, the user or another process",
  somebody: "another process or the user",
  "goes on without": "skips",
  "in few words": "compact",
  "says of itself": "reports",
  "stands behind": "follows",
  "meets a fate": "is forwarded, rejected or dropped",
  fate: "result",
  fates: "results",
  mend: "fix",
  mends: "fixes",
  mended: "fixed",
  law: "property",
  laws: "properties",
  judge: "oracle",
  judges: "oracles or decides",
  obligation: "requirement",
  obligations: "requirements",
  "bad hour": "fault schedule",
};

/** Found as whole identifiers, in this case. Names that also have a plain meaning (Look, Room, Hold) are not here. */
const identifiers = {
  Crank: "FamilyLoop",
  Tray: "Inbox",
  Bell: "Notify",
  bringAbout: "syncOnce",
  setbacks: "retries",
  culprits: "refusedKeys",
  LingeringChains: "DeferredDeletes",
  ModeAtWork: "Mode",
  Traits: "Behavior",
  Habits: "Behavior",
  shortCut: "localShortCircuit",
  turnsAway: "noEndpoints",
  retreat: "release",
  Spared: "RuleSelection",
  staysDuring: "keepDuring",
  Door: "RelayPolicy",
  isDeaf: "hasLostListener",
  dropDeaf: "closeLostRelays",
  ToldTwice: "DuplicateElement",
  glance: "walkLive",
  Spread: "BackendSlots",
  portions: "batches",
  CannotReach: "SourceError",
  patienceMs: "timeoutMs",
  nothingYet: "initialStatus",
  Doubt: "ConfigWarning",
  tellDoubts: "reportWarnings",
  compileLater: "delayOptimization",
  lookFrom: "resolveTarget",
  lookAt: "loadNode",
  Glimpse: "PartialView",
  toldByDaemon: "fromDaemon",
  Tales: "StreamedAnswers",
  ToldPort: "PortJson",
  Mistake: "UsageError",
  obey: "runCommand",
  CannotDo: "CommandError",
  Customs: "AdmissionHooks",
  farewell: "gracefulDeletion",
  happenings: "events",
};

const searched = [
  "bin",
  "deploy",
  "src",
  "page",
  "playground",
  "test",
  "bench",
  "scripts",
  "docs",
  "README.md",
  "ARCHITECTURE.md",
  "CONTRIBUTING.md",
  "CHANGELOG.md",
];
const skipped =
  /^docs\/spec\/|^scripts\/words\.mjs$|^test\/words\.test\.ts$|(^|\/)node_modules\/|\.(png|gz|wasm|cast)$/;

/** Lines that may have a word, because users depend on it. */
const kept = {
  // A hidden alias of `--fresh`, its earlier name.
  anew: /--anew\b|"anew"|^\s*anew:/,
  // A key of `turnout status -o json`.
  heard: /\bheardAt\b/,
  // A key of `turnout diff -o json`.
  fates: /\bfates: |"fates": |`fates`/,
};

const pattern = new RegExp(
  [
    ...Object.keys(words).map((word) => inText(word)),
    ...Object.keys(identifiers).map((name) => `(?<![\\w$])${name}(?![\\w$])`),
  ].join("|"),
  "gu",
);

/** As a word of its own or of an identifier, with any space or a dash between two words. */
function inText(phrase) {
  const capital = (text) => text[0].toUpperCase() + text.slice(1);
  const [first, ...rest] = phrase.split(" ");
  const tail = rest.map((word) => `[\\s_-]?[${word[0]}${word[0].toUpperCase()}]${word.slice(1)}`).join("");
  const upper = phrase.toUpperCase().replaceAll(" ", "[\\s_-]");
  return `(?:(?:(?<![A-Za-z])${first}|(?<![A-Z])${capital(first)})${tail}|(?<![A-Za-z])${upper}(?![A-Z]))(?![a-z])`;
}

/** Where a file has such words: in its path (line 0) and its lines. */
function findings(path, text) {
  return [path, ...text.split("\n")].flatMap((line, number) =>
    [...line.matchAll(pattern)]
      .map(({ 0: found }) => ({ path, number, word: nameOf(found) }))
      .filter(({ word }) => !kept[word]?.test(line)),
  );
}

/** As it is named in the tables above. */
function nameOf(found) {
  if (Object.hasOwn(identifiers, found)) return found;
  return found
    .replace(/([a-z])([A-Z])/g, "$1 $2")
    .replace(/[\s_-]+/g, " ")
    .toLowerCase();
}

function* filesUnder(root, path) {
  if (!existsSync(join(root, path)) || skipped.test(path)) return;
  if (statSync(join(root, path)).isFile()) yield path;
  else for (const name of readdirSync(join(root, path)).sort()) yield* filesUnder(root, `${path}/${name}`);
}

function main(root) {
  const found = searched
    .flatMap((top) => [...filesUnder(root, top)])
    .flatMap((path) => findings(path, readFileSync(join(root, path), "utf8")));
  for (const { path, number, word } of found) {
    const place = number > 0 ? `${path}:${number}` : `${path} (its name)`;
    console.error(`${place}: "${word}": use ${identifiers[word] ?? words[word]}`);
  }
  return found.length > 0 ? 1 : 0;
}

process.exitCode = main(process.argv[2] ?? join(import.meta.dirname, ".."));
