// Why a playground cannot start on this machine.

/** The message says what is missing. */
export class CannotStart extends Error {}
