// The scenarios themselves: readable, without clashes, and every row of docs/spec/12 that is about a packet is there.
import { describe, expect, it } from "vitest";
import { families, familyOf, parseAddress, parseCidr } from "../src/model/address.ts";
import { nodeAddresses, outsideAddresses, placeOf, places, twin } from "./places.ts";
import { casesFor, commonModes, parsePackets, readScenario, scenarioNames } from "./scenarios.ts";
import { changedObjects, readStories } from "./stories.ts";

const scenarios = scenarioNames().map(readScenario);
const packets = scenarios.flatMap((scenario) => scenario.packets);

const stories = scenarioNames().flatMap(readStories);

// 151 is the size of a kernel table.
const notShown = [151];

describe("scenarios", () => {
  it("cover every row of docs/spec/12, with packets or with stories", () => {
    const rows = new Set([...packets, ...stories].flatMap(({ rows }) => rows));
    expect(range(1, 176).filter((row) => !rows.has(`12/${row}`))).toEqual(notShown);
  });

  it("cover both families wherever a row does not concern one alone", () => {
    const seen = (row: string): string[] => [
      ...new Set(packets.filter(({ rows }) => rows.includes(row)).map(({ family }) => family)),
    ];
    const lopsided = [...new Set(packets.flatMap(({ rows }) => rows))].filter(
      (row) => seen(row).length !== 2,
    );
    expect(lopsided.sort()).toEqual(["12/100", "12/162", "12/89", "12/90", "12/91", "12/94"]);
  });

  it("send every packet from a place of the world", () => {
    expect(packets.filter(({ from }) => placeOf(from.address) === null)).toEqual([]);
  });

  it("state one outcome for a packet, mode and family", () => {
    const claims = packets.flatMap(({ scenario, from, to, modes, oursOnly }) =>
      modes.map((mode) => JSON.stringify([scenario, from, to, mode, oursOnly])),
    );
    expect(claims.filter((claim, i) => claims.indexOf(claim) !== i)).toEqual([]);
  });

  it("do not get into each other's way when they share a cluster", () => {
    const taken = scenarios.flatMap(({ name, objects }) =>
      objects
        .filter(({ kind }) => kind === "Service")
        .map((service) => service.spec as { clusterIP: string; ports: { nodePort?: number }[] })
        .flatMap(({ clusterIP, ports }) => [clusterIP, ...new Set(ports.map(({ nodePort }) => nodePort))])
        .filter((claim) => claim !== undefined && claim !== "None")
        .map((claim) => ({ name, claim })),
    );
    const clashes = taken.filter(({ claim }, i) => taken.findIndex((other) => other.claim === claim) !== i);
    expect(clashes).toEqual([]);
  });
});

describe("a story", () => {
  const web = (changes: Parameters<typeof changedObjects>[1]) =>
    changedObjects({ name: "established-connections" }, changes).filter(
      ({ metadata }) => metadata.namespace !== undefined,
    );

  it("changes objects in both families, field by field", () => {
    const endpoints = [{ addresses: ["10.180.1.1"] }];
    const [service, ipv4, ipv6] = web([
      { "EndpointSlice/web-1": { endpoints } },
      { "Service/web": { spec: { sessionAffinity: "ClientIP" } } },
    ]);
    expect(service?.spec).toMatchObject({ clusterIP: "172.30.0.84", sessionAffinity: "ClientIP" });
    expect(ipv4?.endpoints).toEqual(endpoints);
    expect(ipv6?.endpoints).toEqual([{ addresses: ["fd00:180:0:1::1"] }]);
  });

  it("removes objects", () => {
    expect(web([{ "EndpointSlice/web-1": null }]).map(({ kind }) => kind)).toEqual(["Service"]);
  });
});

describe("a truth table", () => {
  const read = (line: string) => parsePackets("example", line);

  it("returns a case for each family, the second with the corresponding addresses", () => {
    const cases = read(
      "pod 10.180.0.2 172.30.0.1:80/tcp forward 10.180.0.1:8080,10.180.1.1:8080 masquerade # 12/1",
    );
    expect(cases.map(({ family }) => family)).toEqual(families);
    expect(cases[1]).toEqual({
      scenario: "example",
      line: "example/packets.txt:1",
      rows: ["12/1"],
      family: "ipv6",
      modes: commonModes,
      oursOnly: false,
      from: { kind: "pod", address: "fd00:180::2" },
      to: { address: "fd00:172:30::1", port: 80, protocol: "tcp" },
      outcome: {
        kind: "forward",
        choices: [
          { endpoint: "[fd00:180::1]:8080", masquerade: true, bypassed: false },
          { endpoint: "[fd00:180:0:1::1]:8080", masquerade: true, bypassed: false },
        ],
      },
    });
  });

  it("lets a line for a mode replace the general one", () => {
    const cases = read(`pod 10.180.0.2 172.30.0.1:81/tcp pass
      nftables: pod 10.180.0.2 172.30.0.1:81/tcp reject`).filter(({ family }) => family === "ipv4");
    expect(cases.map(({ modes, outcome }) => [modes, outcome.kind])).toEqual([
      [["iptables", "ipvs"], "pass"],
      [["nftables"], "reject"],
    ]);
  });

  it("keeps a deliberate difference of ours apart from what kube-proxy does", () => {
    const cases = read(`nftables: node 127.0.0.1 127.0.0.1:30061/udp reject
      turnout nftables: node 127.0.0.1 127.0.0.1:30061/udp forward 10.180.0.1:8080`);
    const kinds = (program: "turnout" | "kube-proxy") =>
      casesFor(cases, "nftables", program).map(({ outcome }) => outcome.kind);
    expect([kinds("kube-proxy"), kinds("turnout")]).toEqual([
      ["reject", "reject"],
      ["forward", "forward"],
    ]);
  });

  it("names endpoints that are masqueraded or bypassed alone", () => {
    const [first] = read(
      "pod 10.180.1.1 192.168.0.2:30000/tcp forward 10.180.0.1:1,10.180.1.1:2 masquerade 10.180.1.1:2 bypass 10.180.0.1:1",
    );
    expect(first?.outcome).toEqual({
      kind: "forward",
      choices: [
        { endpoint: "10.180.0.1:1", masquerade: false, bypassed: true },
        { endpoint: "10.180.1.1:2", masquerade: true, bypassed: false },
      ],
    });
  });

  it.each([
    ["client 10.180.0.2 172.30.0.1:80/tcp drop", "client is no kind of sender"],
    ["pod 10.180.0.2 172.30.0.1:80/dccp drop", "172.30.0.1:80/dccp is no destination"],
    ["pod 10.180.0.2 172.30.0.1:80/tcp vanish", "vanish is no outcome"],
    [
      "pod 10.180.0.2 172.30.0.1:80/tcp forward 10.180.0.1:1 twice",
      "forward 10.180.0.1:1 twice is no outcome",
    ],
    ["netmap: pod 10.180.0.2 172.30.0.1:80/tcp drop", "netmap is neither a mode nor a family"],
  ])("refuses %s", (line, problem) => {
    expect(() => read(line)).toThrow(`Cannot read example/packets.txt:1: ${problem}`);
  });
});

describe("the twin of an address", () => {
  it("is a different canonical IPv6 address for each", () => {
    const all = [...Object.values(places), ...outsideAddresses.slice(1), ...nodeAddresses.slice(1)];
    const twins = all.map(twin);
    for (const address of twins)
      expect([parseAddress(address), familyOf(address)]).toEqual([address, "ipv6"]);
    expect(new Set(twins).size).toBe(all.length);
  });

  it("of a network is a network", () => {
    for (const network of ["10.180.0.0/16", "203.0.113.0/25", "0.0.0.0/0", "172.30.0.0/16", "127.0.0.1/32"]) {
      expect(parseCidr(twin(network))).toBe(twin(network));
    }
  });
});

function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, i) => first + i);
}
