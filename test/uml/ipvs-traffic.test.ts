// What our daemon in ipvs mode makes of packets, and what the kernel holds meanwhile, in both families.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { families } from "../../src/model/address.ts";
import { inFamily, places } from "../places.ts";
import { testClients } from "./ipvs-clients.ts";
import { testEndpoints } from "./ipvs-endpoints.ts";
import { at, openLab, serverAt, shop, slow } from "./ipvs-lab.ts";

const lab = openLab();
const { L1, L2, R2 } = places;

beforeAll(async () => {
  lab.show();
  await lab.start({ ipvs: { syncPeriod: "5s" } });
}, slow);
afterAll(() => lab.stop(), slow);

describe.each(families)("%s", (family) => {
  testEndpoints(lab, family);
  testClients(lab, family);
});

it("20/45 serves both families apart: one goes, the other stays", async () => {
  const vip = "172.30.0.30";
  lab.show(...shop("web", { clusterIP: vip }, [L1, R2]));
  const both = { [at(L1, "ipv4")]: 1, [at(R2, "ipv4")]: 1 };
  const six = { [at(L1, "ipv6")]: 1, [at(R2, "ipv6")]: 1 };
  await lab.become(serverAt(vip, "ipv4"), both);
  await lab.become(serverAt(vip, "ipv6"), six);
  const session = lab.open(L2, vip, 80);
  const reached = await session.talk();
  lab.show(...shop("web", { clusterIP: vip, clusterIPs: [vip], ipFamilies: ["IPv4"] }, [L1, R2]));
  await lab.become(serverAt(vip, "ipv6"), null);
  expect(await session.talk()).toBe(reached);
  expect(await lab.weights(serverAt(vip, "ipv4"))).toEqual(both);
  lab.show(
    ...shop(
      "web",
      { clusterIP: inFamily(vip, "ipv6"), clusterIPs: [inFamily(vip, "ipv6")], ipFamilies: ["IPv6"] },
      [L1, R2],
    ),
  );
  await lab.become(serverAt(vip, "ipv6"), six);
  await lab.become(serverAt(vip, "ipv4"), null);
  session.close();
});
