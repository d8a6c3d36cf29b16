// Senders that are handled alike share a line.
import { expect, it } from "vitest";
import { routed, servicePort } from "../../test/support/routed.ts";
import { printRoutes } from "./print.ts";
import type { Routes, Target } from "./routes.ts";

const targets: Readonly<Record<string, Target>> = {
  reject: { kind: "reject" },
  drop: { kind: "drop" },
  plain: { kind: "forward", pool: { endpoints: [] }, masquerade: false } as unknown as Target,
};

it.each([
  ["drop", "drop", "drop", ["all senders   drop"]],
  ["drop", "drop", "reject", ["pod, node     drop", "outside       reject"]],
  ["drop", "reject", "drop", ["pod, outside  drop", "node          reject"]],
  ["drop", "reject", "reject", ["pod           drop", "node, outside reject"]],
  ["drop", "reject", "plain", ["pod           drop", "node          reject", "outside       forward "]],
])("%s, %s, %s", (pod, node, outside, lines) => {
  const from = { pod: targets[pod], node: targets[node], outside: targets[outside] };
  const frontend = { kind: "clusterIP", address: "172.30.0.1", protocol: "tcp", port: 80 };
  const port = { service: "shop/web", portName: "", protocol: "tcp", affinity: null };
  const portRoutes = { port, routes: [{ frontend, from, allowed: null }], lost: [] };
  const routes = { ports: new Map([["shop/web/tcp/", portRoutes]]) } as unknown as Routes;
  expect(printRoutes(routes)).toBe(
    `shop/web  tcp\n  clusterIP 172.30.0.1:80/tcp\n${lines.map((line) => `    ${line}\n`).join("")}`,
  );
});

it("security/2: a long list of source ranges is shortened, since every address repeats it", () => {
  const sourceRanges = Array.from({ length: 150 }, (_, i) => `203.0.${i}.0/24`);
  const port = servicePort("shop/web", { loadBalancerIPs: ["198.51.100.1"], sourceRanges });
  expect(printRoutes(routed([port]))).toContain("203.0.99.0/24 and 50 more\n");
});
