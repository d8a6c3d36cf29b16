// The recorded corpus stays readable and stays what its seeds generate.
import { describe, expect, it } from "vitest";
import { generateCase } from "./cases.ts";
import { corpusSeeds, readCorpus, readIpvsCorpus } from "./corpus.ts";
import { generateIpvsCase } from "./ipvs-cases.ts";

describe("the corpus of recorded iptables rules", () => {
  const corpus = readCorpus();

  it("holds every seed, with rules for both families", () => {
    expect(corpus.map(({ seed }) => seed)).toEqual(corpusSeeds);
    for (const { rules } of corpus) {
      expect(rules["iptables-save"]).toContain("-A KUBE-SERVICES ");
      expect(rules["ip6tables-save"]).toContain("-A KUBE-SERVICES ");
    }
  });

  it("contains the states that the generator returns for these seeds", () => {
    for (const { seed, configuration, objects } of corpus)
      expect({ seed, configuration, objects }).toEqual(
        JSON.parse(JSON.stringify(generateCase(seed, "iptables"))),
      );
  });
});

describe("the corpus of recorded IPVS", () => {
  const corpus = readIpvsCorpus();

  it("holds many states, with sets of both families", () => {
    expect(corpus.length).toBeGreaterThanOrEqual(60);
    for (const { rules } of corpus) expect(rules["ipset save"]).toContain("create KUBE-6-CLUSTER-IP ");
  });

  it("contains the states that the generator returns for these seeds", () => {
    for (const { rules: _, ...state } of corpus)
      expect(state).toEqual(JSON.parse(JSON.stringify(generateIpvsCase(state.seed))));
  });
});
