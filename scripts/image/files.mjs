// Chooses what the image contains besides Debian: Node.js and the packages that are not bundled, and the programs.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { bundled, root } from "../bundle.mjs";

const home = "opt/turnout";
const nodePackage = `node-linux-${process.arch}`;

/** The pinned Node.js, without documentation and headers. */
export function nodeFiles() {
  return [
    ...packageFiles(nodePackage),
    { path: `${home}/node_modules/.bin/node`, link: `../${nodePackage}/bin/node` },
  ];
}

/** The bundled programs with what they load at run time, and what runs them. The playground is not among them. */
export function programFiles(billOfMaterials) {
  const file = (path, from, mode) => ({ path, mode, content: readFileSync(join(root, from)) });
  return [
    ...bundled.external.flatMap((name) => packageFiles(name)),
    ...packageFiles(`@koromix/koffi-linux-${process.arch}`),
    ...["kube-proxy.cjs", "turnout.cjs", "page.json"].map((name) =>
      file(`${home}/dist/${name}`, `dist/${name}`),
    ),
    ...["kube-proxy", "turnout"].map((name) => file(`${home}/bin/${name}`, `bin/${name}`, 0o755)),
    ...["kube-proxy", "turnout"].map((name) => ({
      path: `usr/local/bin/${name}`,
      link: `/${home}/bin/${name}`,
    })),
    file(`${home}/bin/node.sh`, "bin/node.sh"),
    file(`${home}/LICENSE`, "LICENSE"),
    { path: `${home}/turnout.cdx.json`, content: Buffer.from(billOfMaterials) },
    // Where the runtime mounts its devices.
    { path: "dev/" },
    file("go-runner", "deploy/image/go-runner", 0o755),
  ];
}

/** An npm package as it is installed, without documentation and headers. */
function packageFiles(name) {
  const folder = join(root, "node_modules", name);
  return readdirSync(folder, { recursive: true })
    .filter((path) => !/^(include|share|doc)(\/|$)|\.md$/.test(path))
    .map((path) => ({ path, status: statSync(join(folder, path)) }))
    .filter(({ status }) => status.isFile())
    .map(({ path, status }) => ({
      path: `${home}/node_modules/${name}/${path}`,
      mode: status.mode & 0o100 ? 0o755 : 0o644,
      content: readFileSync(join(folder, path)),
    }));
}
