// Finds words that the style of this project replaces by plain ones, and identifiers that were renamed.
// scripts/words.json allows each folder so many of them; the numbers may only shrink.
// usage: words.mjs [--lower] [root]   --lower: writes lower allowances where fewer are found
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Found in any case, also as a part of an identifier: `toldTwice`. */
const words = {
  told: "reported, returned, logged or printed",
  tells: "reports, returns, logs or prints",
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
  "src",
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
  /^docs\/spec\/|^scripts\/words\.(mjs|json)$|^test\/words\.test\.ts$|(^|\/)node_modules\/|\.(png|gz|wasm|cast)$/;

/** Lines that may have a word: `--anew` is a hidden alias of `--fresh`, and `heardAt` a key of `turnout status -o json`. */
const kept = { anew: /--anew\b|"anew"|^\s*anew:/, heard: /\bheardAt\b/ };

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
  return `(?:(?<![A-Za-z])${first}|(?<![A-Z])${capital(first)}|(?<![A-Za-z])${phrase.toUpperCase()})${tail}(?![a-z])`;
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

/** The longest prefix of a path that has allowances. */
function folderOf(path, allowances) {
  const holding = Object.keys(allowances).filter(
    (prefix) => path === prefix || path.startsWith(`${prefix}/`),
  );
  return holding.sort((a, b) => b.length - a.length)[0] ?? path;
}

function main(args) {
  const root = args.find((arg) => !arg.startsWith("--")) ?? join(import.meta.dirname, "..");
  const list = join(root, "scripts/words.json");
  const allowances = existsSync(list) ? JSON.parse(readFileSync(list, "utf8")) : {};

  const found = new Map();
  for (const path of searched.flatMap((top) => [...filesUnder(root, top)])) {
    for (const finding of findings(path, readFileSync(join(root, path), "utf8"))) {
      const key = `${folderOf(path, allowances)}\n${finding.word}`;
      found.set(key, [...(found.get(key) ?? []), finding]);
    }
  }

  const tooMany = [...found].filter(([key, places]) => places.length > allowed(allowances, key));
  for (const [key, places] of tooMany) {
    const [folder, word] = key.split("\n");
    const instead = identifiers[word] ?? words[word];
    console.error(
      `${folder}: "${word}" ${places.length} times, allowed ${allowed(allowances, key)}: use ${instead}`,
    );
    for (const { path, number } of places)
      console.error(`  ${path}${number > 0 ? `:${number}` : " (its name)"}`);
  }

  const lowered = lower(allowances, found);
  if (args.includes("--lower")) writeFileSync(list, `${JSON.stringify(lowered, null, 2)}\n`);
  else if (sum(lowered) < sum(allowances)) {
    console.log(
      `words: ${sum(allowances) - sum(lowered)} fewer than scripts/words.json allows: run scripts/words.mjs --lower`,
    );
  }
  return tooMany.length > 0 ? 1 : 0;
}

function allowed(allowances, key) {
  const [folder, word] = key.split("\n");
  return allowances[folder]?.[word] ?? 0;
}

/** What is found of what is allowed; nothing that is at zero. */
function lower(allowances, found) {
  const folders = Object.entries(allowances).map(([folder, counts]) => [
    folder,
    Object.fromEntries(
      Object.entries(counts)
        .map(([word, count]) => [word, Math.min(count, found.get(`${folder}\n${word}`)?.length ?? 0)])
        .filter(([, count]) => count > 0),
    ),
  ]);
  return Object.fromEntries(folders.filter(([, counts]) => Object.keys(counts).length > 0));
}

function sum(allowances) {
  return Object.values(allowances)
    .flatMap((counts) => Object.values(counts))
    .reduce((total, count) => total + count, 0);
}

process.exitCode = main(process.argv.slice(2));
