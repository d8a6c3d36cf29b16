// The tool: each command in a file of its own.
process.stderr.write("turnout: not implemented yet\n");
process.exitCode = 1;
