// Sends Events with the API client that the Source uses.
import type { ApiClient } from "../../sources/api/client.ts";
import { ApiFailure } from "../../sources/api/failure.ts";
import type { SendEvent } from "./recorder.ts";

export function sendWith(client: ApiClient, signal: AbortSignal): SendEvent {
  return async ({ method, path, contentType, body }) => {
    try {
      await client.json({ method, path, body: { contentType, text: body } }, signal);
      return 200;
    } catch (error) {
      // A refusal has a code; without one there was no answer.
      if (error instanceof ApiFailure && error.code !== 0) return error.code;
      throw error;
    }
  };
}
