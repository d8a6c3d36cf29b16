// A Trace as text: one column of labels, one of facts; same Trace, same bytes.
import { joinHostPort } from "../model/address.ts";
import { outcomePhrase } from "./outcome.ts";
import type { Candidate, Trace } from "./trace.ts";

export function printTrace(trace: Trace): string {
  const { packet, node } = trace;
  // A sender from elsewhere may have an address that only pods of this node have.
  const sender = packet.from.origin === "elsewhere" ? trace.sender : packet.from.origin;
  const from = `${sender} ${packet.from.address}`;
  const to = `${joinHostPort(packet.to.address, packet.to.port)}/${packet.to.protocol}`;
  const rows: [string, readonly string[]][] = [
    ["packet", [`${from} → ${to}, as ${node} sees it`]],
    ["service", [trace.service === null ? "none" : `${trace.service}, at its ${trace.frontend}`]],
    ["because", trace.because],
    ["outcome", [outcomeText(trace), ...candidateLines(trace.candidates)]],
    ["left out", trace.leftOut.map(({ endpoint, node: on, reason }) => `${endpoint}${place(on)}: ${reason}`)],
    ["client", [`sees ${trace.clientSees}`]],
  ];
  return rows
    .flatMap(([label, lines]) => lines.map((line, i) => `${(i === 0 ? label : "").padEnd(9)} ${line}\n`))
    .join("");
}

function outcomeText({ outcome, candidates, stickySeconds }: Trace): string {
  const whom = candidates.length === 1 ? "the only one" : `one of ${candidates.length}`;
  const sticky = stickySeconds === null ? "" : `, and always the same for ${stickySeconds} s`;
  return outcomePhrase(outcome, `forward to ${whom}${sticky}`);
}

function candidateLines(candidates: readonly Candidate[]): string[] {
  const width = Math.max(0, ...candidates.map(({ endpoint, node }) => `${endpoint}${place(node)}`.length));
  return candidates.map(
    ({ endpoint, node, probability, because }) =>
      `${(probability * 100).toFixed(1).padStart(5)} %  ${`${endpoint}${place(node)}`.padEnd(width)}  ${because}`,
  );
}

function place(node: string): string {
  return node === "" ? "" : ` on ${node}`;
}
