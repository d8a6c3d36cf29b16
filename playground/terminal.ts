// The playground on a terminal: draws the view when something changes, and reads the prompt.

import type { ReadStream, WriteStream } from "node:tty";
import { modes } from "../src/modes/index.ts";
import { runLine } from "./commands.ts";
import { choicesOf, choicesText, completed } from "./complete.ts";
import type { SyncReport } from "./daemon.ts";
import { emptyLine, keysIn, type Line, lineOf, pressed, textOf } from "./line.ts";
import type { Playground } from "./playground.ts";
import { samplesOf } from "./samples.ts";
import { onTerminal } from "./text.ts";
import { promptColumn, renderView } from "./view.ts";

export type Terminal = { readonly input: ReadStream; readonly output: WriteStream; readonly colour: boolean };

const drawEveryMs = 100;
/** How many output lines PgUp and PgDn scroll. */
const page = 6;

const esc = "\u001b";

export class TerminalView {
  readonly #terminal: Terminal;
  readonly #syncs = new Map<string, { report: SyncReport; count: number; at: number }>();
  readonly #output: string[] = [
    "Pods, nodes and outside clients are network namespaces; packets are real.",
    "Type help for the commands. Tab completes commands and names.",
  ];
  #line: Line = emptyLine;
  /** Entered lines, oldest first, and the index of the one recalled with ↑ and ↓. */
  readonly #history: string[] = [];
  #historyIndex = 0;
  /** Lines that have not run yet. */
  #queue: string[] = [];
  #busy = false;
  #scrolledLines = 0;
  #drawn = "";

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  synced(report: SyncReport): void {
    const count = (this.#syncs.get(report.node)?.count ?? 0) + 1;
    this.#syncs.set(report.node, { report, count, at: Date.now() });
    if (report.trigger === "drift")
      this.print(
        `${report.node}: ${familyName(report)} rules changed by another program, restored in ${report.ms} ms`,
      );
  }

  print(line: string): void {
    this.#output.push(line);
    if (this.#output.length > 1000) this.#output.shift();
  }

  /** Until the user quits or the signal aborts. */
  async run(playground: Playground, signal: AbortSignal): Promise<void> {
    // Interrupted during the start.
    if (signal.aborted) return;
    const { input, output } = this.#terminal;
    output.write("\u001b[?1049h\u001b[2J");
    input.setRawMode(true);
    input.setEncoding("utf8");
    input.resume();
    const drawing = setInterval(() => this.#draw(playground), drawEveryMs);
    // A resize leaves the screen in an unknown state.
    const redraw = () => {
      this.#drawn = "";
    };
    output.on("resize", redraw);
    try {
      await new Promise<void>((resolve) => {
        signal.addEventListener("abort", () => resolve(), { once: true });
        input.on("data", (keys: string) => {
          for (const key of keysIn(keys)) if (this.#press(key, playground)) resolve();
        });
      });
    } finally {
      clearInterval(drawing);
      output.off("resize", redraw);
      input.setRawMode(false);
      input.pause();
      output.write("\u001b[?1049l\u001b[?25h");
    }
  }

  /** True when the user quits. */
  #press(key: string, playground: Playground): boolean {
    if (key === "\u0003" || key === "\u0004") return true;
    if (key === "\r" || key === "\n") {
      const line = textOf(this.#line).trim();
      this.#line = emptyLine;
      if (line !== "") this.#history.push(line);
      this.#historyIndex = this.#history.length;
      if (line === "quit" || line === "exit" || line === "q") return true;
      this.#scrolledLines = 0;
      const { api } = playground;
      this.#queue.push(...(line === "" ? samplesOf(api.list("Service"), api.list("Pod")) : [line]));
      if (!this.#busy) void this.#runQueue(playground);
    } else if (key === "\t") this.#complete(playground);
    else if (key === `${esc}[A` || key === `${esc}OA`) this.#recall(-1);
    else if (key === `${esc}[B` || key === `${esc}OB`) this.#recall(1);
    else if (key === `${esc}[5~`) this.#scroll(page);
    else if (key === `${esc}[6~`) this.#scroll(-page);
    else this.#line = pressed(this.#line, key);
    return false;
  }

  /** Prints the candidates when nothing more can be completed. */
  #complete({ api }: Playground): void {
    const { before, after } = this.#line;
    const { line, choices } = completed(
      before,
      choicesOf((kind) => api.list(kind)),
    );
    if (line === before && choices.length > 0) this.print(choicesText(choices));
    this.#line = { before: line, after };
  }

  #recall(step: -1 | 1): void {
    this.#historyIndex = Math.max(0, Math.min(this.#history.length, this.#historyIndex + step));
    this.#line = lineOf(this.#history[this.#historyIndex] ?? "");
  }

  #scroll(lines: number): void {
    this.#scrolledLines = Math.max(0, Math.min(this.#output.length - 1, this.#scrolledLines + lines));
  }

  async #runQueue(playground: Playground): Promise<void> {
    this.#busy = true;
    for (let line = this.#queue.shift(); line !== undefined; line = this.#queue.shift()) {
      this.print(`> ${line}`);
      const answer = (each: string) => this.print(`  ${each}`);
      await runLine(playground, line, answer).catch((error: unknown) => answer(String(error)));
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
        noEndpoints: modes[playground.mode].behavior.noEndpoints,
        kubeconfig: playground.kubeconfig,
        services: api.list("Service"),
        pods: api.list("Pod"),
        slices: api.list("EndpointSlice"),
        nodes: api.list("Node"),
        syncs: this.#syncs,
        output: this.#output,
        scrolledLines: this.#scrolledLines,
        line: this.#line,
        busy: this.#busy,
        now: Date.now(),
      },
      screen,
    );
    const frame = lines.map((line) => `${onTerminal(line)}\u001b[K`).join("\r\n");
    if (frame === this.#drawn) return;
    this.#drawn = frame;
    const column = promptColumn(this.#line, screen.width);
    output.write(`\u001b[?25l\u001b[H${frame}\u001b[${screen.height};${column}H\u001b[?25h`);
  }
}

function familyName({ family }: SyncReport): string {
  return family.endsWith("6") ? "IPv6" : "IPv4";
}
