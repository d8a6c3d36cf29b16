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

/** `1,234`; `–` where it is not known. */
export function amount(value: number | null): string {
  return value === null ? "–" : value.toLocaleString("en");
}

/** A second: `0.4`, `96`. */
export function rate(value: number | null): string {
  return value !== null && value > 0 && value < 10
    ? value.toFixed(1)
    : amount(value === null ? null : Math.round(value));
}

/** `812 B`, `1.2 MiB`. */
export function bytes(value: number | null): string {
  if (value === null) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  const unit = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, value)) / 10));
  const scaled = value / 1024 ** unit;
  return `${unit === 0 ? Math.round(scaled) : scaled.toFixed(1)} ${units[unit]}`;
}

/** Of an endpoint: without the port, and without brackets. */
export function addressOf(endpoint: string): string {
  return endpoint.slice(0, endpoint.lastIndexOf(":")).replace(/^\[|\]$/g, "");
}
