// Keeps the process alive while it waits for something that does not: timers of the clock, unchanged files, servers that are down.

/** Until the returned function is called. */
export function holdProcess(): () => void {
  const hold = setInterval(() => {}, 1 << 30);
  return () => clearInterval(hold);
}
