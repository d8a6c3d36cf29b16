// The playground on a terminal: draws the view when something changes, and reads the prompt.
import type { ReadStream, WriteStream } from "node:tty";
import { runLine } from "./commands.ts";
import type { SyncNews } from "./daemon.ts";
import type { Playground } from "./playground.ts";
import { renderView } from "./view.ts";

export type Terminal = { readonly input: ReadStream; readonly output: WriteStream; readonly colour: boolean };

/** What Enter alone sends. */
const samples = [
  "send stock-1 svc/shop/web:80 2",
  "send outside nodeport:30080",
  "send outside nodeport:30081",
  "send web-1 svc/shop/stock:9090",
  "send web-1 svc/shop/broken:80",
];

const drawEveryMs = 100;

const esc = "\u001b";
/** An escape sequence, or one character. */
const keyPattern = new RegExp(`${esc}\\[?[A-Za-z0-9;~]*|.`, "gsu");

export class TerminalView {
  readonly #terminal: Terminal;
  readonly #syncs = new Map<string, { news: SyncNews; count: number; at: number }>();
  readonly #output: string[] = [
    "Welcome. Pods, nodes and the outside are real network namespaces; so are the packets.",
  ];
  #input = "";
  /** Lines that were entered, oldest first, and which of them is shown again. */
  readonly #entered: string[] = [];
  #recalled = 0;
  #busy = false;
  #drawn = "";

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  synced(news: SyncNews): void {
    const count = (this.#syncs.get(news.node)?.count ?? 0) + 1;
    this.#syncs.set(news.node, { news, count, at: Date.now() });
    if (news.trigger === "drift")
      this.say(`${news.node}: rules changed by somebody else were repaired in ${news.ms} ms`);
  }

  say(line: string): void {
    this.#output.push(line);
    if (this.#output.length > 1000) this.#output.shift();
  }

  /** Until the user quits or the signal aborts. */
  async run(playground: Playground, signal: AbortSignal): Promise<void> {
    const { input, output } = this.#terminal;
    output.write("\u001b[?1049h\u001b[2J");
    input.setRawMode(true);
    input.setEncoding("utf8");
    input.resume();
    const drawing = setInterval(() => this.#draw(playground), drawEveryMs);
    try {
      await new Promise<void>((resolve) => {
        signal.addEventListener("abort", () => resolve(), { once: true });
        input.on("data", (keys: string) => {
          for (const key of keys.match(keyPattern) ?? []) if (this.#press(key, playground)) resolve();
        });
      });
    } finally {
      clearInterval(drawing);
      input.setRawMode(false);
      input.pause();
      output.write("\u001b[?1049l\u001b[?25h");
    }
  }

  /** True: the user wants to go. */
  #press(key: string, playground: Playground): boolean {
    if (key === "\u0003" || key === "\u0004") return true;
    if (key === "\r" || key === "\n") {
      const line = this.#input.trim();
      this.#input = "";
      if (line !== "") this.#entered.push(line);
      this.#recalled = this.#entered.length;
      if (line === "quit" || line === "exit" || line === "q") return true;
      if (!this.#busy) void this.#work(line === "" ? samples : [line], playground);
    } else if (key === "\u007f" || key === "\b") this.#input = this.#input.slice(0, -1);
    else if (key === "\u0015") this.#input = "";
    else if (key === `${esc}[A`) this.#recall(-1);
    else if (key === `${esc}[B`) this.#recall(1);
    else if (key.startsWith(esc)) return false;
    else if (key >= " ") this.#input += key;
    return false;
  }

  #recall(step: -1 | 1): void {
    this.#recalled = Math.max(0, Math.min(this.#entered.length, this.#recalled + step));
    this.#input = this.#entered[this.#recalled] ?? "";
  }

  async #work(lines: readonly string[], playground: Playground): Promise<void> {
    this.#busy = true;
    for (const line of lines) {
      this.say(`> ${line}`);
      const answers = await runLine(playground, line).catch((error: unknown) => [String(error)]);
      for (const answer of answers) this.say(`  ${answer}`);
    }
    this.#busy = false;
  }

  #draw(playground: Playground): void {
    const { output, colour } = this.#terminal;
    const { api } = playground;
    const screen = { width: output.columns || 80, height: output.rows || 24, colour };
    const lines = renderView(
      {
        mode: playground.mode,
        url: api.url,
        kubeconfig: playground.kubeconfig,
        services: api.list("Service"),
        pods: api.list("Pod"),
        slices: api.list("EndpointSlice"),
        nodes: api.list("Node"),
        syncs: this.#syncs,
        output: this.#output,
        input: this.#input,
        busy: this.#busy,
        now: Date.now(),
      },
      screen,
    );
    const frame = lines.map((line) => `${line}\u001b[K`).join("\r\n");
    if (frame === this.#drawn) return;
    this.#drawn = frame;
    output.write(`\u001b[?25l\u001b[H${frame}\u001b[${screen.height};${this.#input.length + 3}H\u001b[?25h`);
  }
}
