// Tab completion: commands, and the names of pods, nodes, Deployments and Services. Pure.
import { type ApiObject, dig, isMap, scalar } from "./api/objects/object.ts";
import { commands } from "./commands.ts";

/** The values of each placeholder in the usage of a command. */
export type Choices = Readonly<Record<string, readonly string[]>>;

export type Completed = {
  readonly line: string;
  /** The candidates when there are several. */
  readonly choices: readonly string[];
};

export function completed(line: string, choices: Choices): Completed {
  const before = line.trimStart().split(/\s+/);
  const word = before.pop()!;
  const hits = wordsAfter(before, choices).filter((each) => each.startsWith(word));
  const [first = word] = hits;
  const shared = hits.reduce(sharedStart, first);
  const whole = hits.length === 1 ? `${shared} ` : shared;
  return { line: line.slice(0, line.length - word.length) + whole, choices: hits.length > 1 ? hits : [] };
}

export function choicesOf(list: (kind: string) => readonly ApiObject[]): Choices {
  const [pods, nodes] = [namesOf(list("Pod")), namesOf(list("Node"))];
  return {
    POD: pods,
    NODE: nodes,
    DEPLOYMENT: namesOf(list("Deployment")),
    FROM: [...pods, ...nodes, "node", "outside"],
    TO: [...new Set(list("Service").flatMap(placesOf))],
    "[COMMAND]": Object.keys(commands),
  };
}

/** One line with the first 40. */
export function choicesText(choices: readonly string[]): string {
  const most = 40;
  const more = choices.length - most;
  return `  ${choices.slice(0, most).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

function wordsAfter([name, ...args]: readonly string[], choices: Choices): readonly string[] {
  if (name === undefined) return Object.keys(commands);
  const usage = Object.hasOwn(commands, name) ? commands[name]!.usage : "";
  return choices[usage.split(" ")[args.length + 1] ?? ""] ?? [];
}

/** With the namespace when the name is not unique. */
function namesOf(objects: readonly ApiObject[]): string[] {
  const names = objects.map(({ metadata }) => metadata.name);
  return objects.map(({ metadata: { name, namespace } }) =>
    names.indexOf(name) === names.lastIndexOf(name) ? name : `${namespace}/${name}`,
  );
}

/** `svc/shop/web:80` and `nodeport:30080`. */
function placesOf(service: ApiObject): string[] {
  const ports = dig(service, "spec.ports");
  if (!Array.isArray(ports) || dig(service, "spec.clusterIP") === "None") return [];
  const { namespace, name } = service.metadata;
  return ports
    .filter(isMap)
    .flatMap(({ port, nodePort, protocol }) => [
      `svc/${namespace}/${name}:${scalar(port)}`,
      ...(nodePort === undefined ? [] : [`nodeport:${scalar(nodePort)}${protocol === "UDP" ? "/udp" : ""}`]),
    ]);
}

function sharedStart(a: string, b: string): string {
  let length = 0;
  while (length < a.length && a[length] === b[length]) length++;
  return a.slice(0, length);
}
