// A made-up build, for tests of what reports builds.
import type { BuildFacts } from "../../src/observe/metrics/metrics.ts";

export const someBuild: BuildFacts = {
  major: "1",
  minor: "37",
  gitVersion: "v1.37.1+turnout.0.1.0",
  platform: "linux/amd64",
  turnoutVersion: "0.1.0",
  nodeVersion: "v20.0.0",
};
