// What is wrong with a tracked flow: the classes of `turnout doctor flows`, each with its reason in one sentence.
import { joinHostPort } from "../model/address.ts";
import type { FlowView } from "../model/flow.ts";
import { portLabel } from "../model/snapshot.ts";
import { activityOf, isConnection, isReplied } from "./activity.ts";
import type { Attribution, ServiceFlow } from "./attribute.ts";
import type { EligibilityOf, Exclusion } from "./eligibility.ts";

export const flowClasses = [
  "endpoint-gone",
  "service-deleted",
  "not-eligible",
  "untranslated",
  "unreplied",
] as const;

export type FlowClass = (typeof flowClasses)[number];

/** What a class means, as help and reports print it. */
export const classMeanings: Readonly<Record<FlowClass, string>> = {
  "endpoint-gone": "the Service exists, but the endpoint of the flow is no longer one of its endpoints",
  "service-deleted": "the flow was translated at an address that no Service has any more",
  "not-eligible":
    "the endpoint exists, but a new connection would not reach it (policy, zone or node hints, drain, readiness, source ranges)",
  untranslated: "the flow started before the Service had rules, is not translated, and is not answered",
  unreplied: "the endpoint does not answer, and the client keeps the flow alive by sending again",
};

/** One flow of a class. */
export type Finding = {
  readonly class: FlowClass;
  /** For `not-eligible`. */
  readonly exclusion?: Exclusion;
  readonly because: string;
};

/** Why a client is known to keep an unreplied flow alive; null: it may have just started. */
export type KeptAlive = (flow: FlowView) => string | null;

/** null: nothing is wrong, or the flow does not belong to a Service. A connection that has ended is never a finding. */
export function findingOf(
  flow: FlowView,
  attribution: Attribution,
  eligibilityOf: EligibilityOf,
  keptAlive: KeptAlive,
): Finding | null {
  if (attribution.kind === "other" || activityOf(flow) === "closed") return null;
  if (attribution.kind === "deleted") return { class: "service-deleted", because: attribution.because };
  const { to } = attribution;
  switch (to.kind) {
    case "relay":
      return null;
    case "gone":
      return goneFinding(attribution, joinHostPort(to.address, to.port));
    case "untranslated":
      return isReplied(flow) ? null : untranslatedFinding(attribution);
    case "endpoint": {
      const eligibility = eligibilityOf(flow, attribution, to.endpoint);
      if (eligibility.kind === "excluded")
        return { class: "not-eligible", exclusion: eligibility.reason, because: eligibility.because };
      if (activityOf(flow) !== "opening") return null;
      const evidence = keptAlive(flow);
      return evidence === null ? null : { class: "unreplied", because: evidence };
    }
  }
}

function goneFinding({ routed }: ServiceFlow, place: string): Finding {
  return {
    class: "endpoint-gone",
    because: `${place} is no longer an endpoint of ${portLabel(routed.port)}`,
  };
}

function untranslatedFinding({ routed }: ServiceFlow): Finding {
  return {
    class: "untranslated",
    because: `it started while ${portLabel(routed.port)} had no rules or no endpoint, so nothing translates it`,
  };
}

/** Whether deleting the entry breaks no connection: TCP and SCTP only before they are established. */
export function mayDelete(flow: FlowView): boolean {
  return !isConnection(flow);
}
