import { describe, expect, it } from "vitest";
import { beginMessage, endMessage, itemAt, messagesIn, readAnswer } from "./message.ts";
import { Writer } from "./writer.ts";

const ACKNOWLEDGEMENT_DETAILS = 0x200;
const CAPPED = 0x100;

describe("an answer", () => {
  it("contains the kernel's message and its offset", () => {
    expect(answer(ACKNOWLEDGEMENT_DETAILS | CAPPED, -17, "already there", 36, 0)).toEqual({
      sequence: 5,
      errno: 17,
      text: "already there",
      offset: 36,
    });
  });

  it("is found after an echoed request", () => {
    expect(answer(ACKNOWLEDGEMENT_DETAILS, -2, "no such thing", 20, 22)).toMatchObject({
      errno: 2,
      text: "no such thing",
    });
  });

  it("may be a bare acknowledgement", () => {
    expect(answer(CAPPED, 0, "", 0, 0)).toEqual({ sequence: 5, errno: 0, text: "", offset: null });
  });
});

describe("messages", () => {
  it("end where a length makes no sense", () => {
    const out = new Writer();
    endMessage(out, beginMessage(out, 16, 0, 1));
    out.u32(3);
    out.zeros(20);
    expect([...messagesIn(Buffer.from(out.bytes()), out.length)]).toHaveLength(1);
  });
});

describe("a list of attributes", () => {
  it("maps an offset to an item", () => {
    const out = new Writer();
    for (const length of [3, 8, 1]) {
      const at = out.begin(1);
      out.zeros(length);
      out.end(at);
    }
    const buffer = Buffer.from(out.bytes());
    expect([0, 4, 8, 19, 20, 24, 99].map((offset) => itemAt(buffer, 0, buffer.length, offset))).toEqual([
      0, 0, 1, 1, 2, 2, -1,
    ]);
  });
});

function answer(flags: number, code: number, words: string, offset: number, echoed: number) {
  const out = new Writer();
  const at = beginMessage(out, 2, flags, 5);
  out.u32(code);
  const original = beginMessage(out, 0xa00, 1, 5);
  out.zeros(echoed);
  endMessage(out, original);
  out.pad();
  if (words !== "") {
    const message = out.begin(1);
    out.text(words);
    out.end(message);
    const where = out.begin(2);
    out.u32(offset);
    out.end(where);
  }
  endMessage(out, at);
  const buffer = Buffer.from(out.bytes());
  const [message] = messagesIn(buffer, buffer.length);
  return readAnswer(buffer, message!);
}
