// Keeps two daemons of one machine from writing the same history: an abstract socket, which ends with its process.
import { statSync } from "node:fs";
import { createServer } from "node:net";

/** Returns the function that releases it; null: another process holds it. */
export function lockDirectory(directory: string): Promise<(() => void) | null> {
  const { dev, ino } = statSync(directory);
  const server = createServer((socket) => socket.destroy());
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "EADDRINUSE") resolve(null);
      else reject(error);
    });
    server.listen({ path: `\0turnout-history-${dev}-${ino}` }, () => {
      server.unref();
      resolve(() => server.close());
    });
  });
}
