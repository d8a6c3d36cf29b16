// Writes tar archives that depend on their contents alone: sorted, owned by root, without times.

/**
 * What a file in an archive is. `path` is relative, without a leading slash or dot.
 * @typedef {{path: string, mode?: number, content: Buffer} | {path: string, link: string}} Entry
 */

const block = 512;

/** The archive, with an entry for each folder that the entries are in. */
export function tar(entries) {
  const all = [...foldersOf(entries), ...entries].sort((a, b) => (a.path < b.path ? -1 : 1));
  const pieces = all.flatMap((entry) => [header(entry), padded(entry.content ?? Buffer.alloc(0))]);
  return Buffer.concat([...pieces, Buffer.alloc(2 * block)]);
}

function foldersOf(entries) {
  const paths = new Set();
  for (const { path } of entries) {
    const steps = path.split("/");
    for (let n = 1; n < steps.length; n++) paths.add(`${steps.slice(0, n).join("/")}/`);
  }
  return [...paths].map((path) => ({ path }));
}

function padded(content) {
  const rest = content.length % block;
  return rest === 0 ? content : Buffer.concat([content, Buffer.alloc(block - rest)]);
}

/** The format `ustar` of POSIX. */
function header(entry) {
  const { path, link = "", content } = entry;
  const kind = path.endsWith("/") ? "5" : link === "" ? "0" : "2";
  const { name, prefix } = split(path);
  const bytes = Buffer.alloc(block);
  const octal = (value, at, length) =>
    bytes.write(`${value.toString(8).padStart(length - 1, "0")}\0`, at, "ascii");
  bytes.write(name, 0, 100);
  octal({ 5: 0o755, 2: 0o777, 0: entry.mode ?? 0o644 }[kind], 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(content?.length ?? 0, 124, 12);
  octal(0, 136, 12);
  bytes.write(" ".repeat(8), 148);
  bytes.write(kind, 156);
  bytes.write(link, 157, 100);
  bytes.write("ustar\0" + "00", 257);
  bytes.write("root", 265);
  bytes.write("root", 297);
  octal(0, 329, 8);
  octal(0, 337, 8);
  bytes.write(prefix, 345, 155);
  const sum = bytes.reduce((total, byte) => total + byte, 0);
  bytes.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return bytes;
}

function split(path) {
  if (Buffer.byteLength(path) <= 100) return { name: path, prefix: "" };
  for (let at = path.indexOf("/"); at > 0; at = path.indexOf("/", at + 1)) {
    const [prefix, name] = [path.slice(0, at), path.slice(at + 1)];
    if (Buffer.byteLength(prefix) <= 155 && Buffer.byteLength(name) <= 100 && name !== "")
      return { name, prefix };
  }
  throw new Error(`cannot write ${path} to an archive: the path is too long`);
}
