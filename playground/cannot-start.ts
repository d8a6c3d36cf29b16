// Why a playground cannot start on this machine.

/** The message names what is missing. */
export class CannotStart extends Error {}
