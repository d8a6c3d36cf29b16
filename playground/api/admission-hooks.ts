// How objects come and go, beyond what is written in them: what the server fills in, and what lingers when it is deleted.
import type { ApiObject, Draft } from "./objects/object.ts";
import type { Resource } from "./objects/resources.ts";

/**
 * Fills in and checks what a writer hands in, before it is stored; `old` is null for a new object.
 * `strict`: fields that nobody knows are refused too.
 */
export type Admit = (resource: Resource, draft: Draft, old: ApiObject | null, strict: boolean) => Draft;

/** What an object that is to be deleted looks like until it is gone; null: it goes at once. */
export type Terminate = (object: ApiObject, graceSeconds: number | undefined) => Draft | null;

/** Throws Failure when an object must stay. */
export type CheckDelete = (object: ApiObject) => void;

export type AdmissionHooks = {
  readonly admit: Admit;
  readonly terminate: Terminate;
  readonly checkDelete?: CheckDelete;
};

/** Of a server without controllers: everything is stored as it comes, and goes when it is told. */
export const defaultHooks: AdmissionHooks = { admit: (_resource, draft) => draft, terminate: () => null };
