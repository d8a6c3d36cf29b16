// Senders that meet the same fate share a line, whoever they are.
import { expect, it } from "vitest";
import { printRoutes } from "./print.ts";
import type { Routes, Target } from "./routes.ts";

const fates: Readonly<Record<string, Target>> = {
  reject: { kind: "reject" },
  drop: { kind: "drop" },
  plain: { kind: "forward", pool: { endpoints: [] }, masquerade: false } as unknown as Target,
};

it.each([
  ["drop", "drop", "drop", ["everybody     drop"]],
  ["drop", "drop", "reject", ["pod, node     drop", "outside       reject"]],
  ["drop", "reject", "drop", ["pod, outside  drop", "node          reject"]],
  ["drop", "reject", "reject", ["pod           drop", "node, outside reject"]],
  ["drop", "reject", "plain", ["pod           drop", "node          reject", "outside       forward "]],
])("%s, %s, %s", (pod, node, outside, lines) => {
  const from = { pod: fates[pod], node: fates[node], outside: fates[outside] };
  const frontend = { kind: "clusterIP", address: "172.30.0.1", protocol: "tcp", port: 80 };
  const port = { service: "shop/web", portName: "", protocol: "tcp", affinity: null };
  const routed = { port, routes: [{ frontend, from, allowed: null }], lost: [] };
  const routes = { ports: new Map([["shop/web/tcp/", routed]]) } as unknown as Routes;
  expect(printRoutes(routes)).toBe(
    `shop/web  tcp\n  clusterIP 172.30.0.1:80/tcp\n${lines.map((line) => `    ${line}\n`).join("")}`,
  );
});
