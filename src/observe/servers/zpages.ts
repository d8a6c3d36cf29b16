// `/flagz` and `/statusz`: flags and versions for people, and as objects for programs.
import type { Answer } from "./http.ts";
import { plainText } from "./http.ts";
import { negotiate } from "./negotiate.ts";
import type { Page } from "./router.ts";

const component = "kube-proxy";

export type StatusFacts = {
  /** Milliseconds since 1970. */
  readonly startedAt: number;
  /** The runtime, where Kubernetes components report their Go version. */
  readonly runtime: string;
  /** `1.37.1` */
  readonly binaryVersion: string;
  /** `1.37` */
  readonly emulationVersion: string;
  readonly paths: readonly string[];
};

/** Names and values of all flags, in any order. */
export function flagzPage(flags: () => ReadonlyMap<string, string>): Page {
  return (request) => {
    const sorted = [...flags()].sort(([a], [b]) => (a < b ? -1 : 1));
    return zpage(request.headers.accept, "Flagz", {
      text: () => sorted.map(([name, value]) => `${name}=${value}\n`).join(""),
      fields: () => ({ flags: Object.fromEntries(sorted) }),
    });
  };
}

export function statuszPage(facts: StatusFacts, now: () => number): Page {
  return (request) => {
    const uptimeSeconds = Math.max(0, Math.floor((now() - facts.startedAt) / 1000));
    return zpage(request.headers.accept, "Statusz", {
      text: () => statusText(facts, uptimeSeconds),
      fields: () => ({
        startTime: `${new Date(facts.startedAt).toISOString().slice(0, 19)}Z`,
        uptimeSeconds,
        goVersion: facts.runtime,
        binaryVersion: facts.binaryVersion,
        emulationVersion: facts.emulationVersion,
        paths: facts.paths,
      }),
    });
  };
}

function statusText(facts: StatusFacts, uptime: number): string {
  const two = (value: number) => String(value).padStart(2, "0");
  const up = `${Math.floor(uptime / 3600)} hr ${two(Math.floor(uptime / 60) % 60)} min ${two(uptime % 60)} sec`;
  return [
    "",
    `Started: ${unixDate(facts.startedAt)}`,
    `Up: ${up}`,
    `Go version: ${facts.runtime}`,
    `Binary version: ${facts.binaryVersion}`,
    `Emulation version: ${facts.emulationVersion}`,
    `Paths: ${facts.paths.join(" ")}`,
    "",
  ].join("\n");
}

/** `Fri Jan  2 03:04:05 UTC 2026` */
function unixDate(at: number): string {
  const [weekday = "", day = "", month = "", year = "", time = ""] = new Date(at).toUTCString().split(/,? /);
  return `${weekday} ${month} ${String(Number(day)).padStart(2)} ${time} UTC ${year}`;
}

type Content = { readonly text: () => string; readonly fields: () => object };

async function zpage(
  accept: string | undefined,
  kind: "Flagz" | "Statusz",
  content: Content,
): Promise<Answer> {
  const form = negotiate(accept, kind);
  switch (form.kind) {
    case "none":
      return notAcceptable(kind);
    case "text":
      return plainText(200, `${heading(kind.toLowerCase())}${content.text()}`);
    case "object": {
      const apiVersion = `config.k8s.io/${form.version}`;
      const object = { kind, apiVersion, metadata: { name: component }, ...content.fields() };
      const old = `299 - "config.k8s.io/v1alpha1 ${kind} is deprecated: ask for v1beta1"`;
      return {
        status: 200,
        headers: {
          "Content-Type": `application/${form.format};g=config.k8s.io;v=${form.version};as=${kind}`,
          ...(form.version === "v1alpha1" ? { Warning: old } : {}),
        },
        body: form.format === "json" ? `${JSON.stringify(object)}\n` : await yaml(object),
      };
    }
  }
}

function heading(page: string): string {
  return `\n${component} ${page}\nWarning: this page is for people. Its form may change at any time: programs should ask for JSON.\n`;
}

function notAcceptable(kind: string): Answer {
  const message = `only text/plain, and application/json or application/yaml with as=${kind};g=config.k8s.io;v=v1beta1, are offered`;
  const status = {
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Failure",
    message,
    reason: "NotAcceptable",
    code: 406,
  };
  return { status: 406, headers: { "Content-Type": "application/json" }, body: JSON.stringify(status) };
}

/** Rarely used: loaded on demand. */
async function yaml(object: object): Promise<string> {
  const { stringify } = await import("yaml");
  return stringify(object);
}
