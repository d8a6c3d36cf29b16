// The playground's API without a playground.
import { ApiServer } from "../../playground/api/server.ts";
import { admission } from "../../playground/cluster/admission.ts";

type Answer = { readonly code: number; readonly body: unknown };

/** Sends one request to an API server. */
export type SendRequest = (
  method: string,
  path: string,
  body: unknown,
  contentType: string,
) => Promise<Answer>;

/** What the story comes to; the server is gone afterwards. */
export async function withSmallApi<T>(story: (send: SendRequest) => Promise<T>): Promise<T> {
  const admit = admission({ services: () => server.list("Service"), hasNamespace: () => true });
  const server = new ApiServer({ hooks: { admit, terminate: () => null } });
  await server.listen();
  try {
    return await story(async (method, path, body, contentType) => {
      const headers = { "content-type": contentType };
      const answer = await fetch(server.url + path, { method, headers, body: JSON.stringify(body) });
      return { code: answer.status, body: await answer.json() };
    });
  } finally {
    await server.close();
  }
}
