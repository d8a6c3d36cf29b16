// In the playground: commands that change its cluster or send traffic, with the effect visible in the views above.
import { useState } from "preact/hooks";
import { post } from "./api.ts";

const examples = [
  "send outside nodeport:30080 5",
  "scale web 5",
  "stop web-1",
  "drain node-b",
  "uncordon node-b",
  "flush node-a",
];

type Run = { readonly line: string; readonly output: readonly string[] | null };

export function Playground() {
  const [line, setLine] = useState("");
  const [runs, setRuns] = useState<readonly Run[]>([]);
  const run = (command: string) => {
    if (command.trim() === "") return;
    const set = (output: readonly string[] | null) =>
      setRuns((before) =>
        [{ line: command, output }, ...before.filter((each) => each.output !== null)].slice(0, 20),
      );
    set(null);
    post<{ lines: readonly string[] }>("/api/act", { line: command }).then(
      ({ lines }) => set(lines),
      (error: Error) => set([error.message]),
    );
  };
  return (
    <section class="panel playground" aria-label="Playground">
      <form
        class="question"
        onSubmit={(event) => {
          event.preventDefault();
          run(line);
          setLine("");
        }}
      >
        <h2>Playground</h2>
        <label>
          <span class="visually-hidden">Command</span>
          <input
            value={line}
            onInput={(event) => setLine(event.currentTarget.value)}
            placeholder="send stock-1 svc/shop/web:80 3    (help lists all commands)"
            spellcheck={false}
            autocapitalize="off"
          />
        </label>
        <button type="submit" class="primary">
          Run
        </button>
      </form>
      <p class="empty">Commands change this cluster or send real packets in it; the views above follow.</p>
      <p class="examples">
        {examples.map((example) => (
          <button type="button" key={example} class="chip" onClick={() => run(example)}>
            {example}
          </button>
        ))}
      </p>
      <div class="output" role="log" aria-label="Output" tabIndex={0}>
        {runs.map((each, i) => (
          <div key={runs.length - i}>
            <code class="dim">&gt; {each.line}</code>
            <pre>{each.output === null ? "…" : each.output.join("\n")}</pre>
          </div>
        ))}
      </div>
    </section>
  );
}
