// Answers `kubectl auth can-i` and `kubectl auth whoami`: an authenticated client may do everything.

const kinds: Readonly<Record<string, { readonly kind: string; readonly status: object }>> = {
  "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews": {
    kind: "SelfSubjectAccessReview",
    status: { allowed: true },
  },
  "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews": {
    kind: "SelfSubjectRulesReview",
    status: {
      resourceRules: [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"] }],
      nonResourceRules: [{ verbs: ["*"], nonResourceURLs: ["*"] }],
      incomplete: false,
    },
  },
  "/apis/authentication.k8s.io/v1/selfsubjectreviews": {
    kind: "SelfSubjectReview",
    status: { userInfo: { username: "playground", groups: ["system:masters", "system:authenticated"] } },
  },
};

/** The response to a review; null for other paths. */
export function reviewAnswer(path: string): unknown {
  const review = Object.hasOwn(kinds, path) ? kinds[path]! : null;
  if (review === null) return null;
  const apiVersion = path.split("/").slice(2, 4).join("/");
  return { apiVersion, kind: review.kind, metadata: {}, spec: {}, status: review.status };
}
