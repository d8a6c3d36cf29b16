// The error that ends start-up: something that the machine, the cluster or the configuration lacks.

export class StartError extends Error {}
