// The most frequent names in a stream, in bounded memory (the space-saving algorithm): exact while all names fit.

export type TopCount = {
  readonly name: string;
  /** At least the true count, and at most `error` above it. */
  readonly count: number;
  readonly error: number;
};

export class TopCounts {
  readonly #capacity: number;
  readonly #counts = new Map<string, { count: number; error: number }>();
  /** Names by count, so that the smallest is found without a search. */
  readonly #byCount = new Map<number, Set<string>>();
  /** No count is smaller. */
  #least = 0;
  #isExact = true;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  add(name: string): void {
    const known = this.#counts.get(name);
    if (known !== undefined) {
      this.#move(name, known.count, known.count + 1);
      known.count++;
      return;
    }
    const error = this.#counts.size < this.#capacity ? 0 : this.#evict();
    this.#counts.set(name, { count: error + 1, error });
    this.#place(name, error + 1);
    if (error === 0) this.#least = 1;
  }

  /** Whether every count is exact. */
  get isExact(): boolean {
    return this.#isExact;
  }

  top(most: number): readonly TopCount[] {
    return [...this.#counts]
      .map(([name, { count, error }]) => ({ name, count, error }))
      .sort((a, b) => b.count - a.count || (a.name < b.name ? -1 : 1))
      .slice(0, most);
  }

  /** Removes a name with the smallest count, which is the error of the one that replaces it. */
  #evict(): number {
    this.#isExact = false;
    while (!this.#byCount.has(this.#least)) this.#least++;
    const name = this.#byCount.get(this.#least)!.values().next().value!;
    this.#remove(name, this.#least);
    this.#counts.delete(name);
    return this.#least;
  }

  #move(name: string, from: number, to: number): void {
    this.#remove(name, from);
    this.#place(name, to);
  }

  #place(name: string, count: number): void {
    const names = this.#byCount.get(count);
    if (names === undefined) this.#byCount.set(count, new Set([name]));
    else names.add(name);
  }

  #remove(name: string, count: number): void {
    const names = this.#byCount.get(count)!;
    names.delete(name);
    if (names.size === 0) this.#byCount.delete(count);
  }
}
