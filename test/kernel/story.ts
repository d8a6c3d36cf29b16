// Runs a story in the world, in both families in parallel, and returns the first step with another result than written.
import { setTimeout as sleep } from "node:timers/promises";
import { type Family, families, joinHostPort } from "../../src/model/address.ts";
import type { KubeObject } from "../cluster.ts";
import { inFamily, placeOf } from "../places.ts";
import { parseTarget } from "../scenarios.ts";
import { type Change, changedObjects, clients, type Send, type Step, type Story } from "../stories.ts";
import { type Conversation, openConversation, type Reply } from "./conversation.ts";
import { httpGet } from "./http.ts";
import { injectInvalid } from "./inject.ts";
import type { ModeUnderTest } from "./oracle.ts";
import { resultOf, senderAt } from "./probe.ts";
import { longTimeoutMs, resultText, usualTimeoutMs } from "./send-packet.ts";
import type { World } from "./world.ts";

/** A busy machine repairs later, but well before the next regular comparison with the kernel, 30 s after the last. */
const eventuallyMs = 15_000;

/** A running proxy that follows its cluster. */
export type ProgramUnderTest = ModeUnderTest & {
  /** Resolves when the node serves these objects instead. */
  update(world: World, objects: readonly KubeObject[]): Promise<void>;
  /** Ends the proxy and starts it again; its rules stay meanwhile. */
  restart(world: World): Promise<void>;
};

/** Plays all steps; null when the story goes as written, else the first step that does not. */
export async function play(world: World, program: ProgramUnderTest, story: Story): Promise<string | null> {
  const stages = families.map((family) => new Stage(world, family));
  const changes: Change[] = [];
  try {
    await program.update(world, changedObjects({ name: story.scenario }, []));
    world.forgetFlows();
    for (const [i, step] of story.steps.entries()) {
      if ("change" in step) {
        changes.push(step.change);
        await program.update(world, changedObjects({ name: story.scenario }, changes));
      } else if ("restart" in step) await program.restart(world);
      else if ("sleep" in step) await sleep(step.sleep * 1000);
      else if ("inputPolicy" in step) world.setInputPolicy(step.inputPolicy);
      else if ("flush" in step) world.sweep();
      else {
        const problems = await Promise.all(stages.map((stage) => stage.perform(step)));
        const problem = problems.find((found) => found !== null) ?? null;
        if (problem !== null) return `step ${i + 1}, ${Object.keys(step)[0]}: ${problem}`;
      }
    }
    return null;
  } finally {
    for (const stage of stages) stage.clear();
    if (story.steps.some((step) => "inputPolicy" in step)) world.setInputPolicy("ACCEPT");
  }
}

type Scene = Exclude<
  Step,
  | { change: unknown }
  | { restart: unknown }
  | { sleep: unknown }
  | { inputPolicy: unknown }
  | { flush: unknown }
>;

/** One family's side of a story: its state from step to step. */
class Stage {
  readonly #world: World;
  readonly #family: Family;
  readonly #pins = new Map<string, Map<string, Reply>>();
  readonly #conversations = new Map<string, Conversation>();

  constructor(world: World, family: Family) {
    this.#world = world;
    this.#family = family;
  }

  async perform(step: Scene): Promise<string | null> {
    if ("send" in step) return this.#send(step.send);
    if ("eventually" in step) return this.#sendAgain(step.eventually);
    if ("open" in step) return this.#open(step.open);
    if ("talk" in step) {
      const wanted = "reach" in step.talk ? this.#endpoint(step.talk.reach) : step.talk.meets;
      return this.#talk(step.talk.as, wanted);
    }
    if ("get" in step) return this.#get(step.get);
    return this.#inject(step.inject);
  }

  clear(): void {
    for (const conversation of this.#conversations.values()) conversation.close();
  }

  async #sendAgain(send: Send): Promise<string | null> {
    const deadline = Date.now() + eventuallyMs;
    for (;;) {
      const problem = await this.#send(send);
      if (problem === null || Date.now() > deadline) return problem;
      await sleep(100);
    }
  }

  async #send(send: Send): Promise<string | null> {
    const senders = (send.from === "clients" ? clients : [send.from]).map((a) => inFamily(a, this.#family));
    const results = await Promise.all(
      senders.map(async (address) => {
        const probe = { from: { kind: "outside" as const, address }, to: parseTarget(send.to, this.#family) };
        const made = Array.from({ length: send.times ?? 1 }, () =>
          resultOf(this.#world, probe, longTimeoutMs),
        );
        return [address, await Promise.all(made)] as const;
      }),
    );
    const failed = results.flatMap(([, list]) => list).find(({ kind }) => kind !== "answered");
    if (failed !== undefined) return `${send.from} → ${send.to}: ${resultText(failed)}`;
    const answers = results.map(
      ([from, list]) => [from, list.filter((result) => result.kind === "answered")] as const,
    );
    const reached = new Map(
      answers.map(([from, list]) => [from, [...new Set(list.map((f) => f.endpoint))].sort()]),
    );
    if (send.randomPorts) {
      const kept = answers.flatMap(([, list]) => list).filter(({ saw, client }) => saw.port === client.port);
      if (kept.length > 1) return `${kept.length} source ports were kept`;
    }
    const shares = answers.flatMap(([, list]) => list).map(({ endpoint }) => endpoint);
    const unfair = send.uniform === undefined ? null : unfairness(shares, send.uniform);
    return unfair ?? this.#check(send, reached);
  }

  #check(send: Send, reached: ReadonlyMap<string, readonly string[]>): string | null {
    const all = [...new Set([...reached.values()].flat())].sort();
    const wanted = send.reach?.map((endpoint) => this.#endpoint(endpoint)).sort();
    if (wanted !== undefined && wanted.join() !== all.join())
      return `reached ${all.join()} instead of ${wanted.join()}`;
    if (send.spread && all.length < 2) return `all clients reached ${all.join()}`;
    if (send.differs !== undefined) {
      const before = this.#pins.get(send.differs)!;
      const moved = [...reached].some(([from, endpoints]) => endpoints.join() !== before.get(from));
      if (!moved) return "all clients reached the endpoint they had before";
    }
    if (send.same === undefined) return null;
    const pins = this.#pins.get(send.same) ?? new Map<string, Reply>();
    this.#pins.set(send.same, pins);
    for (const [from, endpoints] of reached) {
      const pin = pins.get(from) ?? endpoints[0]!;
      pins.set(from, pin);
      if (endpoints.join() !== pin) return `${from} reached ${endpoints.join()} instead of ${pin}`;
    }
    return null;
  }

  async #open({
    as,
    from,
    to,
    reach,
  }: {
    as: string;
    from: string;
    to: string;
    reach?: string;
  }): Promise<string | null> {
    const { protocol, ...at } = parseTarget(to, this.#family);
    const sender = senderAt(this.#world, inFamily(from, this.#family));
    this.#conversations.set(as, openConversation(sender, protocol === "udp" ? "udp" : "tcp", at));
    return reach === undefined ? null : this.#talk(as, this.#endpoint(reach));
  }

  async #talk(as: string, wanted: Reply): Promise<string | null> {
    let reply = await this.#conversations.get(as)!.talk();
    // Flows are cleaned up after a sync, not by it.
    const isWanted = () => (wanted === "no endpoint" ? !reply.includes(":") : reply === wanted);
    for (let more = 10; more > 0 && !isWanted(); more--) {
      await sleep(200);
      reply = await this.#conversations.get(as)!.talk();
    }
    return isWanted() ? null : `${reply} instead of ${wanted}`;
  }

  async #get({
    from,
    at,
    status,
  }: {
    from: string;
    at: string;
    status: number | null;
  }): Promise<string | null> {
    const { address, port } = parseTarget(`${at}/tcp`, this.#family);
    const place = placeOf(inFamily(from, this.#family))!;
    const url = `http://${joinHostPort(address, port)}/`;
    // A packet that is dropped is as silent after seconds as after ten.
    const answer = await httpGet(
      this.#world.at[place],
      url,
      {},
      status === null ? usualTimeoutMs : undefined,
    );
    const seen = answer?.status ?? null;
    return seen === status ? null : `${seen} instead of ${status}`;
  }

  async #inject({
    from,
    to,
    arrives,
  }: {
    from: string;
    to: string;
    arrives: boolean;
  }): Promise<string | null> {
    const target = parseTarget(to, this.#family);
    const [source, place] = [placeOf(inFamily(from, this.#family))!, placeOf(target.address)!];
    const { poller, at } = this.#world;
    const arrived = await injectInvalid(poller, at[source], at[place], target);
    return arrived === arrives ? null : arrived ? "it arrived" : "it did not arrive";
  }

  #endpoint(written: string): string {
    const { address, port } = parseTarget(`${written}/tcp`, this.#family);
    return joinHostPort(address, port);
  }
}

/** null when the choices may well be uniform over this many endpoints: the chi-square test, wrong once in 10⁵. */
function unfairness(choices: readonly string[], endpoints: number): string | null {
  const counts = new Map<string, number>();
  for (const endpoint of choices) counts.set(endpoint, (counts.get(endpoint) ?? 0) + 1);
  const fair = choices.length / endpoints;
  const distance = [...counts.values()].reduce((sum, count) => sum + (count - fair) ** 2 / fair, 0);
  const unlikely: Readonly<Record<number, number>> = { 2: 19.5, 3: 23.0, 4: 25.9 };
  if (counts.size === endpoints && distance < (unlikely[endpoints] ?? 0)) return null;
  return `not uniform: ${[...counts].map(([endpoint, count]) => `${endpoint} ×${count}`).join(", ")}`;
}
