// Protobuf for the API server of the benchmarks, as both programs request it from a real one.
import type { Encoder } from "../../playground/api/http/encoder.ts";
import { protobufEncoder } from "../../test/support/protobuf/encode.ts";

/** Encodes each state of an object once, as real API servers do: listing costs the machine little beside the program that is measured. */
export function cachedProtobuf(): Encoder {
  const added = new WeakMap<object, Buffer>();
  return {
    ...protobufEncoder,
    event(type, object) {
      if (type !== "ADDED") return protobufEncoder.event(type, object);
      const known = added.get(object) ?? protobufEncoder.event(type, object);
      added.set(object, known);
      return known;
    },
  };
}
