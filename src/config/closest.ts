// The known name that is nearest to a mistyped one, for "did you mean …?".

/** null when nothing is near. Capitals and separators do not count. */
export function closest(name: string, known: Iterable<string>): string | null {
  const wanted = plain(name);
  if (wanted.length > 100) return null;
  let best: { name: string; distance: number } | null = null;
  for (const candidate of known) {
    const distance = distanceOf(wanted, plain(candidate));
    if (best === null || distance < best.distance) best = { name: candidate, distance };
  }
  return best !== null && best.distance <= Math.max(1, Math.floor(wanted.length / 4)) ? best.name : null;
}

function plain(name: string): string {
  return name.toLowerCase().replace(/[-_\s]/g, "");
}

/** How many letters are wrong, missing, extra, or swapped with the next. */
function distanceOf(a: string, b: string): number {
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swap = swapped ? before[j - 2]! + 1 : change;
      next.push(Math.min(change, swap, row[j]! + 1, next[j - 1]! + 1));
    }
    [before, row] = [row, next];
  }
  return row[b.length]!;
}
