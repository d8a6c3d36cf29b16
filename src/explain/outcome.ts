// What happens to a packet, as text: for explain and for the page.
import type { Trace } from "./trace.ts";

/** `forward`: the text for a packet that is forwarded, which names its endpoints. */
export function outcomePhrase(outcome: Trace["outcome"], forward: string): string {
  switch (outcome) {
    case "forward":
      return forward;
    case "reject":
      return "reject";
    case "drop":
      return "drop";
    case "close":
      return "close: a relay accepts it and has no endpoint for it";
    case "pass":
      return "pass, untouched";
  }
}
