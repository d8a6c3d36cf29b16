// Which encodings are requested, from `clientConnection.contentType` and `acceptContentTypes`.

export const jsonType = "application/json";
export const protobufType = "application/vnd.kubernetes.protobuf";

export type ContentTypes = { readonly contentType: string; readonly acceptContentTypes: string };

/** kube-proxy's defaults. */
export const defaultAccept = acceptHeader({ contentType: protobufType, acceptContentTypes: "" });

/** As in kube-proxy, without media types that we cannot read, such as YAML and tables; if none is left, JSON. */
export function acceptHeader({ contentType, acceptContentTypes }: ContentTypes): string {
  const wanted =
    acceptContentTypes.trim() === "" ? `${contentType.trim() || protobufType}, */*` : acceptContentTypes;
  const types = wanted.split(",").map((type) => type.trim());
  const readable = types.filter(isReadable);
  const isAny = readable.every((type) => mediaTypeOf(type) === "*/*");
  return isAny ? jsonType : readable.join(", ");
}

/** Any of several; only a weight may follow, since other parameters ask for another form of the object. */
function isReadable(type: string): boolean {
  const [, ...parameters] = type.split(";");
  const isPlain = parameters.every((parameter) => /^\s*q=[0-9.]+\s*$/i.test(parameter));
  return isPlain && [jsonType, protobufType, "*/*"].includes(mediaTypeOf(type));
}

/** Without parameters, of a header's value. */
export function mediaTypeOf(type: string): string {
  return type.split(";")[0]!.trim().toLowerCase();
}
