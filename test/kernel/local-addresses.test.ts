// The addresses of this node: those on its links, without those that ipvs mode keeps for Services.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  followLocalAddresses,
  type LocalAddresses,
  readLocalAddresses,
} from "../../src/host/local-addresses.ts";
import { createNamespace, isRoot, type Namespace } from "./netns.ts";

describe.runIf(isRoot)("addresses of the node", () => {
  let here: Namespace;
  let life: AbortController;
  beforeEach(() => {
    life = new AbortController();
    here = createNamespace();
    here.run("ip", "link", "add", "eth0", "type", "bridge");
    here.run("ip", "address", "add", "192.168.0.2/24", "dev", "eth0");
  });
  afterEach(() => {
    life.abort();
    here.remove();
  });

  it("20/38 are not those of kube-ipvs0, however many are added and removed there; new ones are reported", async () => {
    const place = { netns: here.path };
    const reported: LocalAddresses[] = [];
    await followLocalAddresses(
      place,
      await readLocalAddresses(place),
      (now) => reported.push(now),
      life.signal,
    );
    here.run("ip", "link", "add", "kube-ipvs0", "type", "bridge");
    for (let i = 1; i <= 20; i++) here.run("ip", "address", "add", `172.30.0.${i}/32`, "dev", "kube-ipvs0");
    expect(await readLocalAddresses(place)).toEqual({ ipv4: ["192.168.0.2"], ipv6: [] });
    here.run("ip", "address", "add", "192.168.1.2/24", "dev", "eth0");
    await expect.poll(() => reported.length).toBeGreaterThan(0);
    expect(reported).toEqual([{ ipv4: ["192.168.0.2", "192.168.1.2"], ipv6: [] }]);
  });

  it("that appear between the first reading and the subscription are reported", async () => {
    const place = { netns: here.path };
    const first = await readLocalAddresses(place);
    here.run("ip", "address", "add", "192.168.1.2/24", "dev", "eth0");
    const reported: LocalAddresses[] = [];
    await followLocalAddresses(place, first, (now) => reported.push(now), life.signal);
    expect(reported).toEqual([{ ipv4: ["192.168.0.2", "192.168.1.2"], ipv6: [] }]);
  });
});
