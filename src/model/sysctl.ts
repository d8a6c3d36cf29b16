// A kernel setting that should have a value.

/** differs: write unless it already is so. below: write only to raise it. */
export type SysctlTarget = {
  readonly file: string;
  readonly value: number;
  readonly when: "differs" | "below";
  /** Why it is needed, where the file name does not explain it; for the log. */
  readonly reason?: string;
};
