// `npm start`: the playground; arguments go to it, as in `npm start -- --mode=iptables`.
import { spawn } from "node:child_process";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");
const child = spawn(join(root, "bin/turnout"), ["playground", ...process.argv.slice(2)], {
  cwd: root,
  stdio: "inherit",
  env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` },
});
// A signal is for the playground, which then removes everything; we end when it has ended.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
// So it does when the process that started us is gone without a signal: a shell in between does not pass signals on.
const parent = process.ppid;
setInterval(() => process.ppid !== parent && child.kill("SIGTERM"), 500).unref();
child.on("exit", (code) => process.exit(code ?? 1));
