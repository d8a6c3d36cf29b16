// A file piece by piece: the next one is read while somebody looks at the one before, and into the same little memory.
import { type FileHandle, open } from "node:fs/promises";
import { type Disk, patientDisk } from "./disk.ts";

export type Pieces = {
  /** Whether nothing follows the piece that was given last. */
  readonly isLast: boolean;
  /** Whether what was given stays as it is when the next piece comes. */
  readonly isLasting: boolean;
  /** The next piece, behind what is left of the one before. */
  next(rest: Buffer): Promise<Buffer>;
  /** All of it, whatever was given before. */
  whole(): Promise<Buffer>;
};

const pieceBytes = 1_000_000;
/** For what is left of the piece before. */
const restBytes = 200_000;

/** Which file, and how to read it. */
type Wanted = {
  readonly path: string;
  readonly bytes: number;
  readonly isLasting: boolean;
  readonly disk?: Disk;
};

/** What is not known to be large is read in one. */
export async function withPieces<T>(
  { path, bytes, isLasting, disk = patientDisk }: Wanted,
  use: (pieces: Pieces) => Promise<T>,
  size = pieceBytes,
): Promise<T> {
  // What has no size may be a pipe.
  if (bytes <= size) return use(onePiece(await (bytes === 0 ? patientDisk : disk).read(path)));
  const handle = await open(path);
  try {
    // It may be another file by now.
    const now = await handle.stat();
    return await use(new FilePieces(handle, { bytes: now.size, isLasting, size }));
  } finally {
    await handle.close();
  }
}

export function onePiece(bytes: Buffer): Pieces {
  return {
    isLast: true,
    isLasting: true,
    next: () => Promise.resolve(bytes),
    whole: () => Promise.resolve(bytes),
  };
}

type Plan = {
  /** Of the whole file. */
  readonly bytes: number;
  readonly isLasting: boolean;
  /** Of a piece. */
  readonly size: number;
};

/** Some memory, with a piece of the file behind the room for what is left of another. */
type Filled = { readonly memory: Buffer; readonly length: number };

class FilePieces implements Pieces {
  readonly #handle: FileHandle;
  readonly #plan: Plan;
  #at = 0;
  #ahead: Promise<Filled>;
  /** Where the piece stands that was given last. */
  #given: Buffer | null = null;
  isLast = false;

  constructor(handle: FileHandle, plan: Plan) {
    this.#handle = handle;
    this.#plan = plan;
    this.#ahead = this.#read(this.#memory());
  }

  get isLasting(): boolean {
    return this.#plan.isLasting;
  }

  async next(rest: Buffer): Promise<Buffer> {
    const { memory, length } = await this.#ahead;
    const piece = behind(rest, memory, length);
    this.#at += length;
    // A file that became shorter ends where it ends.
    this.isLast = length < this.#plan.size || this.#at >= this.#plan.bytes;
    const free = this.isLasting ? null : this.#given;
    if (!this.isLast) this.#ahead = this.#read(free ?? this.#memory());
    this.#given = memory;
    return piece;
  }

  whole(): Promise<Buffer> {
    return this.#handle.readFile();
  }

  #memory(): Buffer {
    return Buffer.allocUnsafeSlow(restBytes + this.#plan.size);
  }

  #read(memory: Buffer): Promise<Filled> {
    const { size, bytes } = this.#plan;
    const wanted = Math.min(size, bytes - this.#at);
    const read = this.#handle.read(memory, restBytes, wanted, this.#at);
    const filled = read.then(({ bytesRead }) => ({ memory, length: bytesRead }));
    // Whoever asks for the piece hears of it.
    filled.catch(() => {});
    return filled;
  }
}

function behind(rest: Buffer, memory: Buffer, length: number): Buffer {
  const end = restBytes + length;
  if (rest.length > restBytes) return Buffer.concat([rest, memory.subarray(restBytes, end)]);
  const begin = restBytes - rest.length;
  rest.copy(memory, begin);
  return memory.subarray(begin, end);
}
