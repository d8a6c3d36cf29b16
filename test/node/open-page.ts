// A process that opens `kubectl turnout ui` for a node, signs in as a browser does, prints the answer to a view as JSON, and ends it: NODE VIEW
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

const [, , node, view] = process.argv;
const plugin = spawn("kubectl", ["turnout", "--timeout=60", "ui", `--node=${node}`], {
  stdio: ["ignore", "pipe", "inherit"],
});
const ended = once(plugin, "exit");
try {
  const { value: line } = await createInterface({ input: plugin.stdout })[Symbol.asyncIterator]().next();
  const { origin, hash } = new URL(String(line));
  const session = await fetch(`${origin}/api/session`, {
    method: "POST",
    headers: { origin, "content-type": "application/json" },
    body: JSON.stringify({ token: hash.replace("#token=", "") }),
  });
  const cookie = (session.headers.get("set-cookie") ?? "").split(";")[0]!;
  const answer = await fetch(`${origin}/api/${view}`, { headers: { cookie } });
  process.stdout.write(JSON.stringify({ status: answer.status, body: await answer.json() }));
} finally {
  plugin.kill("SIGTERM");
  await ended;
}
