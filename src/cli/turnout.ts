// The executable turnout: runs the command that its first argument names.
import { dispatch } from "./dispatch.ts";
import { exitWith } from "./exit.ts";
import { untilInterrupted } from "./interrupted.ts";
import { commandWorld } from "./io.ts";

exitWith(dispatch(process.argv.slice(2), commandWorld(), untilInterrupted));
