// Requests to the server of the page.
import type { PageJson } from "../src/page/json.ts";

export class RequestError extends Error {
  /** HTTP status; 0: the server did not answer. */
  readonly status: number;

  constructor(message: string, status: number) {
    super(message);
    this.status = status;
  }
}

export async function getJson<T>(
  view: string,
  query: Readonly<Record<string, string>>,
  signal?: AbortSignal,
): Promise<T> {
  const set = Object.entries(query).filter(([, value]) => value !== "");
  return request<T>(`/api/${view}?${new URLSearchParams(set).toString()}`, { signal: signal ?? null });
}

export async function post<T>(path: string, value: unknown): Promise<T> {
  const headers = { "content-type": "application/json" };
  return request<T>(path, { method: "POST", headers, body: JSON.stringify(value) });
}

async function request<T>(path: string, init: RequestInit): Promise<T> {
  let response: Response;
  try {
    response = await fetch(path, { ...init, credentials: "same-origin" });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new RequestError("the server of this page does not answer", 0);
  }
  // A body that was cut off must not count as an answer.
  if (response.ok) return (await response.json()) as T;
  const { error } = (await response.json().catch(() => ({}))) as { readonly error?: string };
  throw new RequestError(error ?? `the server answered ${response.status}`, response.status);
}

/** Exchanges the token in the address for a cookie, and removes it from the address and the history. */
export async function signIn(): Promise<PageJson> {
  const [, token] = /^#token=([\w-]+)$/.exec(location.hash) ?? [];
  if (token !== undefined) {
    history.replaceState(null, "", "#/services");
    await post("/api/session", { token });
  }
  return getJson<PageJson>("page", {});
}
