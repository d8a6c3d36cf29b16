// Hooks of a write: defaulting and validation before an object is stored, graceful deletion, and protection from deletion.
import type { ApiObject, Draft } from "./objects/object.ts";
import type { Resource } from "./objects/resources.ts";

/**
 * Defaults and validates an object before it is stored; `old` is null for a new object.
 * `strict`: unknown fields are refused too.
 */
export type Admit = (resource: Resource, draft: Draft, old: ApiObject | null, strict: boolean) => Draft;

/** The terminating object to store until its grace period ends; null: delete it immediately. */
export type Terminate = (object: ApiObject, graceSeconds: number | undefined) => Draft | null;

/** Throws Failure when an object may not be deleted. */
export type CheckDelete = (object: ApiObject) => void;

export type AdmissionHooks = {
  readonly admit: Admit;
  readonly terminate: Terminate;
  readonly checkDelete?: CheckDelete;
};

/** Hooks of a server without controllers: objects are stored unchanged and deleted immediately. */
export const defaultHooks: AdmissionHooks = { admit: (_resource, draft) => draft, terminate: () => null };
