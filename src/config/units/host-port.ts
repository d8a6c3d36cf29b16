// `host:port` text, taken apart by Go's rules.
import { parseAddress } from "../../model/address.ts";

/** null: not of the form `host:port` or `[host]:port`. Neither part is checked. */
export function splitHostPort(text: string): { readonly host: string; readonly port: string } | null {
  const colon = text.lastIndexOf(":");
  if (colon < 0) return null;
  if (text.startsWith("[")) {
    const end = text.indexOf("]");
    if (end < 0 || end + 1 !== colon) return null;
    const [host, port] = [text.slice(1, end), text.slice(colon + 1)];
    return /[[\]]/.test(port) || host.includes("[") ? null : { host, port };
  }
  const [host, port] = [text.slice(0, colon), text.slice(colon + 1)];
  return /[:[\]]/.test(host) || /[[\]]/.test(port) ? null : { host, port };
}

/** Adds the port to a bare address; anything else stays as it is and is checked by validation. */
export function appendPort(text: string, port: number): string {
  if (splitHostPort(text) !== null || parseAddress(text) === null) return text;
  return text.includes(":") ? `[${text}]:${port}` : `${text}:${port}`;
}
