// The program of `turnout playground`.
import { exitWith } from "../src/cli/exit.ts";
import { untilInterrupted } from "../src/cli/interrupted.ts";
import { commandWorld } from "../src/cli/io.ts";
import { playground } from "./command.ts";

// The first word is the name of the command.
exitWith(playground(process.argv.slice(3), commandWorld(), untilInterrupted()));
