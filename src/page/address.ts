// Where the page may be served: on loopback only.

export type PageAddress = { readonly host: "127.0.0.1" | "::1"; readonly port: number };

/** `127.0.0.1:10270`, `[::1]:0`, `localhost:8080` or a port alone; null for anything else: the page is for this machine only. */
export function parsePageAddress(text: string): PageAddress | null {
  const [, place, digits] = /^(?:(127\.0\.0\.1|\[::1\]|localhost):)?(\d{1,5})$/.exec(text) ?? [];
  const port = Number(digits);
  if (digits === undefined || port > 65_535) return null;
  return { host: place === "[::1]" ? "::1" : "127.0.0.1", port };
}
