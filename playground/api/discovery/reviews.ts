// Answers `kubectl auth can-i`: a client that is let in may do everything.

const path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/** The answer to an access review; null for any other path. */
export function reviewAnswer(requested: string): unknown {
  if (requested !== path) return null;
  return {
    apiVersion: "authorization.k8s.io/v1",
    kind: "SelfSubjectAccessReview",
    metadata: {},
    spec: {},
    status: { allowed: true },
  };
}
