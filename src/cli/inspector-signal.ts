// Keeps SIGUSR1 from opening the inspector of Node.js: any local user could connect to it and run code as root.

// A listener replaces the one of Node.js. It is installed when this file is loaded, so programs import it first.
process.on("SIGUSR1", () => {});
