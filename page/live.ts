// What the page gets from its server: the latest update and whether it is live, and views that are read, polled or asked for.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Update } from "../src/page/json.ts";
import { getJson, RequestError } from "./api.ts";

export type Connection =
  | { readonly kind: "connecting" }
  | { readonly kind: "live" }
  | { readonly kind: "paused" }
  | { readonly kind: "lost"; readonly since: number; readonly reason: string }
  | { readonly kind: "signed out" };

export type LiveState = { readonly connection: Connection; readonly update: Update | null };

/** Between two attempts to connect again. */
const retryMs = 1_000;

export function useLive(node: string, paused: boolean): LiveState {
  const [update, setUpdate] = useState<Update | null>(null);
  const [connection, setConnection] = useState<Connection>({ kind: "connecting" });
  useEffect(() => {
    if (paused) {
      setConnection({ kind: "paused" });
      return () => {};
    }
    return follow(node, setUpdate, setConnection);
  }, [node, paused]);
  return { connection, update };
}

function follow(
  node: string,
  onUpdate: (update: Update) => void,
  onConnection: (change: (before: Connection) => Connection) => void,
): () => void {
  let events: EventSource | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isOver = false;
  const open = () => {
    events = new EventSource(`/api/events?${new URLSearchParams({ node }).toString()}`);
    events.onmessage = ({ data }: MessageEvent<string>) => {
      onConnection(() => ({ kind: "live" }));
      onUpdate(JSON.parse(data) as Update);
    };
    events.onerror = () => {
      events?.close();
      void lost();
    };
  };
  // The event source does not know why it failed; a request does.
  const lost = async () => {
    const reason = await getJson("update", { node }).then(
      () => null,
      (error: unknown) => error as RequestError,
    );
    if (isOver) return;
    if (reason instanceof RequestError && reason.status === 401) {
      onConnection(() => ({ kind: "signed out" }));
      return;
    }
    if (reason !== null)
      onConnection((before) => ({
        kind: "lost",
        since: before.kind === "lost" ? before.since : Date.now(),
        reason: reason.message,
      }));
    timer = setTimeout(open, reason === null ? 0 : retryMs);
  };
  open();
  return () => {
    isOver = true;
    clearTimeout(timer);
    events?.close();
  };
}

export type Loaded<T> = {
  /** The last one that was loaded; null: none yet. */
  readonly value: T | null;
  readonly error: RequestError | null;
};

/** The JSON of a view, loaded again when the query or the revision changes; what is shown stays until then. */
export function useView<T>(
  view: string,
  query: Readonly<Record<string, string>> | null,
  revision: number | string,
): Loaded<T> {
  const [state, setState] = useState<Loaded<T> & { readonly key: string }>({
    value: null,
    error: null,
    key: "",
  });
  const key = query === null ? "" : JSON.stringify([view, query]);
  const latest = useRef("");
  latest.current = key;
  useEffect(() => {
    if (query === null) return () => {};
    const abort = new AbortController();
    getJson<T>(view, query, abort.signal).then(
      (value) => latest.current === key && setState({ value, error: null, key }),
      (error: unknown) => {
        if (abort.signal.aborted || !(error instanceof RequestError)) return;
        // What is shown stays while the server is away, but not what no longer exists.
        const isKept = error.status !== 404;
        setState((before) => ({ value: isKept && before.key === key ? before.value : null, error, key }));
      },
    );
    return () => abort.abort();
  }, [key, revision]);
  return state;
}

/** The current time, once a second. */
export function useNow(): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, []);
  return now;
}

/** Grows by one each time the interval has passed; not while the page is paused or hidden. */
export function useTick(ms: number, paused: boolean): number {
  const [tick, setTick] = useState(0);
  useEffect(() => {
    if (paused) return () => {};
    const timer = setInterval(() => document.hidden || setTick((before) => before + 1), ms);
    return () => clearInterval(timer);
  }, [ms, paused]);
  return tick;
}

/** The JSON of a view, loaded again so long after each answer; only once while `isOn` is false. */
export function usePolled<T>(
  view: string,
  query: Readonly<Record<string, string>>,
  ms: number,
  isOn: boolean,
): Loaded<T> & { readonly again: () => void } {
  const [state, setState] = useState<Loaded<T>>({ value: null, error: null });
  const [asked, setAsked] = useState(0);
  const key = JSON.stringify([view, query]);
  useEffect(() => {
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const load = async () => {
      try {
        const value = await getJson<T>(view, query, abort.signal);
        if (!abort.signal.aborted) setState({ value, error: null });
      } catch (error) {
        if (!abort.signal.aborted && error instanceof RequestError)
          setState((before) => ({ value: before.value, error }));
      }
      if (isOn && !abort.signal.aborted) timer = setTimeout(next, ms);
    };
    const next = () => {
      if (document.hidden) timer = setTimeout(next, ms);
      else void load();
    };
    void load();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [key, isOn, asked]);
  return { ...state, again: () => setAsked(asked + 1) };
}

/** What is read only when a user asks for it. */
export type OnRequest<T> =
  | { readonly kind: "idle" }
  | { readonly kind: "reading" }
  | { readonly kind: "read"; readonly value: T }
  | { readonly kind: "failed"; readonly message: string };

/** `read` asks again; `clear` forgets the answer. A component that goes away ends its request. */
export function useOnRequest<T>(
  view: string,
  query: Readonly<Record<string, string>>,
): { readonly state: OnRequest<T>; readonly read: () => void; readonly clear: () => void } {
  const [state, setState] = useState<OnRequest<T>>({ kind: "idle" });
  const [asked, setAsked] = useState(0);
  useEffect(() => {
    if (asked === 0) return () => {};
    const abort = new AbortController();
    setState({ kind: "reading" });
    getJson<T>(view, query, abort.signal).then(
      (value) => setState({ kind: "read", value }),
      ({ message }: RequestError) => !abort.signal.aborted && setState({ kind: "failed", message }),
    );
    return () => abort.abort();
  }, [asked]);
  return { state, read: () => setAsked(asked + 1), clear: () => setState({ kind: "idle" }) };
}
