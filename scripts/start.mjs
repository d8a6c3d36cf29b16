// `npm start`: shows what Turnout does on a bundled example, and what to try next.
import { spawnSync } from "node:child_process";
import { join } from "node:path";

const root = join(import.meta.dirname ?? new URL(".", import.meta.url).pathname, "..");
const turnout = (...args) =>
  spawnSync(join(root, "bin/turnout"), args, { cwd: root, stdio: "inherit" }).status ?? 1;

console.log(
  "A small shop on two nodes (examples/shop). Where does its traffic go on node-a, and who decides?\n",
);
const status = turnout("render", "--source=files:examples/shop", "--node=node-a");
console.log(`
Try next:
  bin/turnout render --source=files:examples/shop --node=node-a -o nftables   the same as an nftables table
  bin/turnout run --help                                                      run it, from files or a cluster
  bin/kube-proxy --help                                                       the drop-in for kube-proxy`);
process.exit(status);
