// The address of a view: what is shown and with which filters, in the part of the URL after `#`.
import { useEffect, useState } from "preact/hooks";

export type ViewName = "services" | "packet" | "node";

export type Route = { readonly view: ViewName; readonly query: Readonly<Record<string, string>> };

const views: readonly ViewName[] = ["services", "packet", "node"];

export function parseRoute(hash: string): Route {
  const [path = "", search = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const view = views.find((name) => name === path) ?? "services";
  return { view, query: Object.fromEntries(new URLSearchParams(search)) };
}

export function hrefOf({ view, query }: Route): string {
  const set = Object.entries(query).filter(([, value]) => value !== "");
  const search = new URLSearchParams(set).toString();
  return `#/${view}${search === "" ? "" : `?${search}`}`;
}

/** `replace`: without an entry in the history, for what changes with every key. */
export function go(route: Route, how: "push" | "replace" = "push"): void {
  if (how === "push") {
    location.hash = hrefOf(route);
    return;
  }
  history.replaceState(null, "", hrefOf(route));
  dispatchEvent(new HashChangeEvent("hashchange"));
}

export function useRoute(): Route {
  const [route, setRoute] = useState(() => parseRoute(location.hash));
  useEffect(() => {
    const update = () => setRoute(parseRoute(location.hash));
    addEventListener("hashchange", update);
    return () => removeEventListener("hashchange", update);
  }, []);
  return route;
}

/** The same route with other parameters; an empty value removes one. */
export function withQuery(route: Route, changes: Readonly<Record<string, string>>): Route {
  return { ...route, query: { ...route.query, ...changes } };
}
