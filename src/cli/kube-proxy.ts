// The drop-in executable: kube-proxy's flags and nothing else.
process.stderr.write("kube-proxy: not implemented yet\n");
process.exitCode = 1;
