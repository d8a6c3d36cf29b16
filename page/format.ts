// Numbers, times and shares as text.

export function count(number: number, noun: string): string {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

/** `3 s`, `5 min`, `3 h`, `2 d`. */
export function span(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86_400)} d`;
}

/** `33.3 %`, `100 %`. */
export function percent(share: number): string {
  const value = share * 100;
  return `${Number.isInteger(value) ? value : value.toFixed(1)} %`;
}

export function clockTime(ms: number): string {
  return new Date(ms).toLocaleTimeString("en-GB");
}

export function millis(ms: number): string {
  return ms < 10_000 ? `${Math.round(ms)} ms` : span(ms);
}

/** `10:41:07.312`; with the date on another day. */
export function moment(ms: number): string {
  const date = new Date(ms);
  const time = `${clockTime(ms)}.${String(date.getMilliseconds()).padStart(3, "0")}`;
  return date.toDateString() === new Date().toDateString()
    ? time
    : `${date.toLocaleDateString("en-CA")} ${time}`;
}
