// The tool: runs the command that was asked for.
import { dispatch } from "./dispatch.ts";
import { exitWith } from "./exit.ts";
import { untilInterrupted } from "./interrupted.ts";
import { commandWorld } from "./io.ts";

exitWith(dispatch(process.argv.slice(2), commandWorld(), untilInterrupted));
