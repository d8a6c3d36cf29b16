// Sets of Pods and their ends: who starts, who ends, and how long an end takes.
import { describe, expect, it } from "vitest";
import type { ApiObject, Draft } from "../api/object.ts";
import { endOf, farewell, isEnding } from "./farewell.ts";
import { planSet } from "./sets.ts";

const set = (replicas: number, image = "v1"): ApiObject => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "web", namespace: "shop", uid: "u", resourceVersion: "1", creationTimestamp: "" },
  spec: { replicas, template: { metadata: { labels: { app: "web" } }, spec: { containers: [{ image }] } } },
});

/** As the API would store what the set starts. */
const running = (draft: Draft, fields: object = {}): ApiObject => ({
  apiVersion: "v1",
  kind: "Pod",
  ...draft,
  metadata: {
    ...draft.metadata,
    name: draft.metadata!.name!,
    uid: draft.metadata!.name!,
    resourceVersion: "1",
    creationTimestamp: "",
    ...fields,
  },
  spec: { ...(draft.spec as object), nodeName: "node-a" },
  status: { conditions: [{ type: "Ready", status: "True" }] },
});

const names = (pods: readonly Draft[]) => pods.map(({ metadata }) => metadata?.name);

describe("a set", () => {
  const started = planSet(set(3), []).start.map((draft) => running(draft));

  it("starts what is missing and ends what is too much, the youngest first", () => {
    expect(names(started)).toEqual(["web-1", "web-2", "web-3"]);
    expect(planSet(set(3), started)).toMatchObject({ start: [], end: [] });
    expect(names(planSet(set(1), started).end)).toEqual(["web-2", "web-3"]);
    expect(planSet(set(3), started).status).toMatchObject({ replicas: 3, readyReplicas: 3 });
  });

  it("does not wait for one that ends, and leaves it its name", () => {
    const linger = farewell(() => 0);
    const ending = running(linger(started[0]!, undefined)!);
    expect(names(planSet(set(3), [ending, ...started.slice(1)]).start)).toEqual(["web-4"]);
  });

  it("replaces pods of an older template when the new ones are ready", () => {
    const next = planSet(set(3, "v2"), started);
    expect(names(next.start)).toEqual(["web-4", "web-5", "web-6"]);
    expect(next.end).toEqual([]);
    expect(next.status).toMatchObject({ replicas: 3, updatedReplicas: 0 });
    const both = [...started, ...next.start.map((draft) => running(draft))];
    expect(names(planSet(set(3, "v2"), both).end)).toEqual(["web-1", "web-2", "web-3"]);
  });
});

describe("the end of a pod", () => {
  const pod = running(planSet(set(1), []).start[0]!);
  const linger = farewell(() => 10_000);

  it("takes as long as it is given, and can only come sooner", () => {
    const ending = running(linger(pod, undefined)!);
    expect(isEnding(pod)).toBe(false);
    expect(endOf(ending)).toBe(15_000);
    expect(endOf(running(linger(pod, 30)!))).toBe(40_000);
    expect(endOf(running(linger(ending, 30)!))).toBe(15_000);
    expect(endOf(running(linger(ending, 1)!))).toBe(11_000);
    const own = { ...pod, spec: { nodeName: "node-a", terminationGracePeriodSeconds: 60 } };
    expect(endOf(running(linger(own, undefined)!))).toBe(70_000);
  });

  it("is at once when told so, or when it does not run yet; other objects never linger", () => {
    expect(linger(pod, 0)).toBeNull();
    expect(linger({ ...pod, spec: {} }, undefined)).toBeNull();
    expect(linger(set(1), undefined)).toBeNull();
  });
});

describe("the revisions of a set", () => {
  const stored = (drafts: readonly Draft[]): ApiObject[] =>
    drafts.map((draft) => ({ ...running(draft), kind: "ReplicaSet", spec: draft.spec }));
  const numbers = (drafts: readonly Draft[]) =>
    drafts.map(({ metadata }) => Object.values(metadata?.annotations as object)[0] as string);
  const first = stored(planSet(set(1), []).revisions.keep);
  const second = stored(planSet(set(1, "v2"), [], first).revisions.keep);

  it("are counted, and one that comes back is the latest", () => {
    expect(numbers(first)).toEqual(["1"]);
    expect(numbers(second)).toEqual(["2", "1"]);
    expect(numbers(planSet(set(1, "v2"), [], second).revisions.keep)).toEqual(["2", "1"]);
    expect(numbers(planSet(set(1), [], second).revisions.keep)).toEqual(["3", "2"]);
  });

  it("do not depend on order and empty fields", () => {
    const { spec, ...rest } = set(1);
    const template = {
      spec: { containers: [{ image: "v1" }] },
      metadata: { creationTimestamp: null, labels: { app: "web" } },
    };
    const same = { ...rest, spec: { ...(spec as object), template } };
    expect(planSet(same, [], first).revisions.keep).toHaveLength(1);
  });

  it("are forgotten when there are too many", () => {
    const few = set(1, "v3");
    const limited = { ...few, spec: { ...(few.spec as object), revisionHistoryLimit: 1 } };
    const { keep, forget } = planSet(limited, [], second).revisions;
    expect([keep.length, names(forget)]).toEqual([2, names(first)]);
  });

  it("wait while it is paused: Pods that start look like the last one", () => {
    const paused = set(1, "v3");
    const { start, revisions } = planSet(
      { ...paused, spec: { ...(paused.spec as object), paused: true } },
      [],
      second,
    );
    expect(start[0]?.spec).toMatchObject({ containers: [{ image: "v2" }] });
    expect(revisions.keep).toHaveLength(2);
  });
});
