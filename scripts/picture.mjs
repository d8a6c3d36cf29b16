// Runs the built program and writes its output as a terminal screenshot (SVG) for the README.
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./bundle.mjs";

const file = "docs/images/explain.svg";
const command = "bin/turnout explain pod:10.0.1.9 svc/shop/web:80 --source=files:examples/shop --node=node-a";

const size = { character: 7.8, line: 19, margin: 20, top: 44 };

writeFileSync(join(root, file), svgOf([`$ ${command}`, ...outputOf(command)]));
console.log(`wrote ${file}`);

function outputOf(line) {
  const [program, ...options] = line.split(" ");
  return execFileSync(join(root, program), options, { cwd: root, encoding: "utf8" }).trimEnd().split("\n");
}

function svgOf(lines) {
  const width = Math.ceil(Math.max(...lines.map((line) => line.length)) * size.character + 2 * size.margin);
  const height = size.top + lines.length * size.line + size.margin / 2;
  const lights = ["#ff5f56", "#ffbd2e", "#27c93f"].map(
    (color, index) => `<circle cx="${22 + index * 18}" cy="18" r="5.5" fill="${color}"/>`,
  );
  const rows = lines.map((line, index) => {
    const y = size.top + index * size.line + 8;
    return `<text x="${size.margin}" y="${y}" xml:space="preserve">${colored(line)}</text>`;
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    `<title>${escaped(command)}</title>`,
    `<rect width="100%" height="100%" rx="8" fill="#16181d"/>`,
    ...lights,
    `<g font-family="ui-monospace, SFMono-Regular, Menlo, 'DejaVu Sans Mono', monospace" font-size="13" fill="#d6dae0">`,
    ...rows,
    "</g>",
    "</svg>",
    "",
  ].join("\n");
}

/** The command and the label in the first column have a color of their own. */
function colored(line) {
  const [, label = "", rest = line] = line.match(/^(\$|[a-z]+)( .*)$/) ?? [];
  const color = label === "$" ? "#27c93f" : "#6cb6ff";
  const span = label === "" ? "" : `<tspan fill="${color}">${label}</tspan>`;
  return span + escaped(rest);
}

function escaped(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
