// How long an endpoint that ends stays: as long as its connections, and about a minute longer.
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, expect, it } from "vitest";
import { type Family, families } from "../../src/model/address.ts";
import { inFamily, places } from "../places.ts";
import { at, openLab, serverAt, shop, slow } from "./ipvs-lab.ts";

const lab = openLab();
const { L1, L2, R1 } = places;
const vips = { closed: "172.30.0.51", silent: "172.30.0.52", talking: "172.30.0.53" } as const;
type Name = keyof typeof vips;
const names = Object.keys(vips) as Name[];
afterAll(() => lab.stop(), slow);

it("20/20 an endpoint goes when its connections have ended or timed out, and stays while one is in use", async () => {
  const drains = (family: Family) => ({ [at(L1, family)]: 0, [at(R1, family)]: 1 });
  const drained = (family: Family) => ({ [at(R1, family)]: 1 });
  lab.show(...services(L1));
  await lab.start({ ipvs: { tcpTimeout: "90s", tcpFinTimeout: "2s" } });
  const places = families.flatMap((family) => names.map((name) => ({ family, name })));
  const sessions = places.map(({ family, name }) => ({
    family,
    name,
    session: lab.open(inFamily(L2, family), inFamily(vips[name], family), 80),
  }));
  const talked = await Promise.all(sessions.map(({ session }) => session.talk()));
  expect(talked).toEqual(places.map(({ family }) => at(L1, family)));
  lab.show(...services(R1));
  for (const { family, name } of places) await lab.become(serverAt(vips[name], family), drains(family));
  for (const { name, session } of sessions) if (name === "closed") session.close();

  const weights = ({ family, name }: (typeof places)[number]) => lab.weights(serverAt(vips[name], family));
  const talking = sessions.filter(({ name }) => name === "talking");
  const others = places.filter(({ name }) => name !== "talking");
  const deadline = Date.now() + 2 * slow;
  for (;;) {
    for (const { family, session } of talking) expect(await session.talk()).toBe(at(L1, family));
    const left = (await Promise.all(others.map(weights))).filter(
      (held) => Object.keys(held ?? {}).length > 1,
    );
    if (left.length === 0 || Date.now() > deadline) break;
    await sleep(2000);
  }
  for (const other of others) expect([other, await weights(other)]).toEqual([other, drained(other.family)]);
  for (const { family, name, session } of talking) {
    expect(await weights({ family, name })).toEqual(drains(family));
    session.close();
  }
});

function services(endpoint: string) {
  return names.flatMap((name) => shop(name, { clusterIP: vips[name] }, [endpoint]));
}
