// A kernel setting: the value it should have, and a change of it.

/** differs: write unless it already is so. below: write only to raise it. */
export type SysctlTarget = {
  readonly file: string;
  readonly value: number;
  readonly when: "differs" | "below";
  /** Why it is needed, where the file name does not explain it; for the log. */
  readonly reason?: string;
};

/** A setting that was written, for the log. */
export type SysctlChange = {
  readonly file: string;
  /** null: the value before could not be read. */
  readonly from: number | null;
  readonly to: number;
  /** Why it is set, where the file name does not explain it. */
  readonly reason?: string;
};
