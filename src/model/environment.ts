// The environment of a child process: variables merged on a null prototype, so that nothing is inherited by accident.

export type Variables = Readonly<Record<string, string | undefined>>;

/**
 * Later layers win. Node.js hands a child every enumerable key of `env`, inherited ones too: on an ordinary object, a key
 * that reached `Object.prototype` would become a variable of every program we start.
 */
export function environmentOf(...layers: readonly Variables[]): Record<string, string> {
  const environment = Object.create(null) as Record<string, string>;
  for (const layer of layers)
    for (const [name, value] of Object.entries(layer)) if (value !== undefined) environment[name] = value;
  return environment;
}
