// Which form of a z-page a client accepts: text for people, or a versioned object as JSON or YAML.

export type Form =
  | { readonly kind: "text" }
  | { readonly kind: "object"; readonly format: "json" | "yaml"; readonly version: "v1alpha1" | "v1beta1" }
  | { readonly kind: "none" };

/** `page` is the kind a client must name: `Flagz`, `Statusz`. */
export function negotiate(accept: string | undefined, page: string): Form {
  if (accept === undefined || accept.trim() === "") return { kind: "text" };
  const clauses = accept.split(",").map(parseClause);
  clauses.sort((a, b) => b.quality - a.quality);
  for (const clause of clauses) {
    const form = accepted(clause, page);
    if (form !== null) return form;
  }
  return { kind: "none" };
}

type Clause = {
  readonly type: string;
  readonly parameters: ReadonlyMap<string, string>;
  readonly quality: number;
};

function parseClause(text: string): Clause {
  const [type = "", ...rest] = text.split(";").map((part) => part.trim());
  const parameters = new Map(
    rest.map((part) => {
      const [name = "", value = ""] = part.split("=");
      return [name.trim().toLowerCase(), value.trim().replace(/^"(.*)"$/, "$1")] as const;
    }),
  );
  const quality = Number(parameters.get("q") ?? "1");
  return { type: type.toLowerCase(), parameters, quality: Number.isNaN(quality) ? 0 : quality };
}

const formats = { "application/json": "json", "application/yaml": "yaml" } as const;

function accepted({ type, parameters }: Clause, page: string): Form | null {
  const asksForObject = ["as", "g", "v"].some((name) => parameters.has(name));
  if (!asksForObject) return ["text/plain", "text/*", "*/*"].includes(type) ? { kind: "text" } : null;
  const version = parameters.get("v");
  const known = parameters.get("as") === page && parameters.get("g") === "config.k8s.io";
  if (!known || (version !== "v1alpha1" && version !== "v1beta1")) return null;
  if (type === "*/*" || type === "application/*") return { kind: "object", format: "json", version };
  if (type !== "application/json" && type !== "application/yaml") return null;
  return { kind: "object", format: formats[type], version };
}
