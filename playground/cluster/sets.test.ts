// Tests of Deployments and of graceful deletion.
import { describe, expect, it } from "vitest";
import type { ApiObject, Draft } from "../api/objects/object.ts";
import { deletionTime, gracefulDeletion, isTerminating } from "./graceful-deletion.ts";
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

describe("a Deployment", () => {
  const started = planSet(set(3), []).start.map((draft) => running(draft));

  it("creates missing Pods and deletes surplus ones, the highest number first", () => {
    expect(names(started)).toEqual(["web-1", "web-2", "web-3"]);
    expect(planSet(set(3), started)).toMatchObject({ start: [], end: [] });
    expect(names(planSet(set(1), started).end)).toEqual(["web-2", "web-3"]);
    expect(planSet(set(3), started).status).toMatchObject({ replicas: 3, readyReplicas: 3 });
  });

  it("does not wait for a terminating Pod, and does not reuse its name", () => {
    const terminate = gracefulDeletion(() => 0);
    const terminating = running(terminate(started[0]!, undefined)!);
    expect(names(planSet(set(3), [terminating, ...started.slice(1)]).start)).toEqual(["web-4"]);
  });

  it("replaces pods of an older template when the new ones are ready", () => {
    const next = planSet(set(3, "v2"), started);
    expect(names(next.start)).toEqual(["web-4", "web-5", "web-6"]);
    expect(next.end).toEqual([]);
    expect(next.status).toMatchObject({ replicas: 3, updatedReplicas: 0 });
    const both = [...started, ...next.start.map((draft) => running(draft))];
    expect(names(planSet(set(3, "v2"), both).end)).toEqual(["web-1", "web-2", "web-3"]);
  });

  it("keeps its pods when the order of fields and empty fields of the template differ", () => {
    const template = {
      spec: { containers: [{ image: "v1" }] },
      metadata: { creationTimestamp: null, labels: { app: "web" } },
    };
    const same = { ...set(3), spec: { replicas: 3, template } };
    expect(planSet(same, started)).toMatchObject({ start: [], end: [] });
  });
});

describe("graceful deletion", () => {
  const pod = running(planSet(set(1), []).start[0]!);
  const terminate = gracefulDeletion(() => 10_000);

  it("lasts for the grace period, which can only be shortened", () => {
    const terminating = running(terminate(pod, undefined)!);
    expect(isTerminating(pod)).toBe(false);
    expect(deletionTime(terminating)).toBe(15_000);
    expect(deletionTime(running(terminate(pod, 30)!))).toBe(40_000);
    expect(deletionTime(running(terminate(terminating, 30)!))).toBe(15_000);
    expect(deletionTime(running(terminate(terminating, 1)!))).toBe(11_000);
    const own = { ...pod, spec: { nodeName: "node-a", terminationGracePeriodSeconds: 60 } };
    expect(deletionTime(running(terminate(own, undefined)!))).toBe(70_000);
  });

  it("is immediate with a grace period of 0, for Pods that do not run yet, and for other objects", () => {
    expect(terminate(pod, 0)).toBeNull();
    expect(terminate({ ...pod, spec: {} }, undefined)).toBeNull();
    expect(terminate(set(1), undefined)).toBeNull();
  });
});
