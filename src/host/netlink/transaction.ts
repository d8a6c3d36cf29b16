// Sends a batch of nf_tables operations, and determines which of them, down to the element, the kernel refused.
import { HostError, type Refusal } from "../error.ts";
import { attributeEnd, attributeType, nextAttribute } from "./attributes.ts";
import { type Batch, encode, type Operation, type TransactionOptions } from "./batch.ts";
import { type Answer, headerLength, itemAt } from "./message.ts";
import { errnoName } from "./native.ts";
import { netfilterHeaderLength } from "./netfilter.ts";
import { elementListAttribute } from "./nftables.ts";
import { mustKnow, type NetlinkSocket, refused, type Visit } from "./socket.ts";

/** Applies all operations or none; the error names every operation that was refused. `echoed`: see `deleteElements`. */
export async function transact(
  socket: NetlinkSocket,
  operations: readonly Operation[],
  options: TransactionOptions = {},
  signal?: AbortSignal,
  echoed?: Visit,
): Promise<Batch> {
  const batch = encode(operations, options);
  if (batch.parts.length === 0) return batch;
  const reply = await socket.exchange(batch.bytes, signal, echoed);
  const objections = reply.answers.filter(({ errno }) => errno !== 0);
  if (objections.length > 0) throw refusalError(operations, batch, objections);
  mustKnow(`apply ${operations.length} operations`, reply);
  return batch;
}

function refusalError(operations: readonly Operation[], batch: Batch, answers: readonly Answer[]): HostError {
  const what = `apply ${operations.length} operations`;
  const refusals = answers.flatMap((answer) => refusalOf(operations, batch, answer));
  const [first] = refusals;
  if (first === undefined) return refused(what, answers[0]!);
  const { kind } = operations[first.operation]!;
  const words = first.text === "" ? first.errno : `${first.text} (${first.errno})`;
  const more = refusals.length > 1 ? `, and ${refusals.length - 1} more refused` : "";
  return new HostError("refused", `Cannot ${what}: ${kind} at ${first.operation}: ${words}${more}`, {
    errno: first.errno,
    text: first.text,
    refusals,
  });
}

function refusalOf(operations: readonly Operation[], batch: Batch, answer: Answer): Refusal[] {
  const part = batch.parts[answer.sequence - 2];
  if (part === undefined) return [];
  const { operation, firstElement, at } = part;
  const refusal = { operation, errno: errnoName(answer.errno), text: answer.text };
  if (!("elements" in operations[operation]!) || answer.offset === null) return [refusal];
  const element = elementAt(batch.bytes, at, at + answer.offset);
  return [element < 0 ? refusal : { ...refusal, element: firstElement + element }];
}

function elementAt(bytes: Uint8Array, message: number, offset: number): number {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const start = message + headerLength + netfilterHeaderLength;
  for (let at = start; at < offset; at = nextAttribute(buffer, at)) {
    if (attributeType(buffer, at) !== elementListAttribute) continue;
    return itemAt(buffer, at + 4, attributeEnd(buffer, at), offset);
  }
  return -1;
}
