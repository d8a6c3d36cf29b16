// Questions about rights: whoever reaches this API may do everything, and says so.

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

/** The answer to a review; null when the path is none. */
export function reviewAnswer(path: string): unknown {
  const review = Object.hasOwn(kinds, path) ? kinds[path]! : null;
  if (review === null) return null;
  const apiVersion = path.split("/").slice(2, 4).join("/");
  return { apiVersion, kind: review.kind, metadata: {}, spec: {}, status: review.status };
}
